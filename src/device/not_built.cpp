// device.h in builds without CUDA.
#include "device/device.h"

namespace trestle {

Result<std::unique_ptr<Devices>> open_devices(const char*) {
  return Error{Code::kInvalidUsage, "this build of Trestle has no CUDA (TRESTLE_CUDA)"};
}

}  // namespace trestle
