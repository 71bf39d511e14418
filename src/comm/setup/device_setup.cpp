#include "comm/setup/device_setup.h"

#include <string>
#include <utility>

#include "comm/device/device_memory.h"
#include "comm/device/opened_devices.h"
#include "engine/work/device_queue.h"

namespace trestle {

namespace {

Result<DevicePlace> open_place(int device) {
  OpenedDevice* const found = TRY(OpenedDevices::process().open(device));
  Device& opened = found->device();
  DevicePlace place;
  place.device = device;
  place.work = TRY(DeviceQueue::create(opened, TRY(found->kernels())));
  place.memory = std::make_unique<DeviceMemory>(opened);
  place.pinned = std::make_unique<PinnedMemory>(opened);
  return place;
}

}  // namespace

Result<DevicePlace> open_device_of(int64_t device) {
  if (device < 0) return DevicePlace{};
  Result<DevicePlace> place = open_place(static_cast<int>(device));
  if (place.ok()) return place;
  return Error{place.error().code,
               "the communicator is to use device " + std::to_string(device) + ": " + place.error().message};
}

}  // namespace trestle
