// Sets up the device of a communicator: the one place where the communicator, the device and the engine meet.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/work/device_place.h"

namespace trestle {

// Opens the device that TRESTLE_DEVICE or the config's `device` names, and makes a work queue and sources of memory for
// one engine. -1: the engine has no device, and nothing is asked. Slow. Errors: this build has no CUDA, there is no
// driver or no such device, or it lacks something; the sentence says which.
Result<DevicePlace> open_device_of(int64_t device);

}  // namespace trestle
