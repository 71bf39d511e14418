// Whether a device of this process reads another one's memory where it lies. Slow: for the time when a communicator is
// made.
#pragma once

#include "base/result.h"
#include "comm/device/opened_devices.h"

namespace trestle {

// Lets `reader` use the memory of `owner`, and proves it: a pattern in the memory of `owner` is read by the driver's
// copy and by a kernel of `reader`, and compared. A machine may promise the path and then deliver other bytes, such as
// one whose IOMMU translates what PCIe devices send to each other. The same device reaches itself. Errors: a sentence
// with both devices; the paths are then not to be used.
Status reach_and_verify(OpenedDevice& reader, OpenedDevice& owner);

}  // namespace trestle
