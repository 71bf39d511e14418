// cuda_driver.h where Trestle is built without CUDA: libtrestle.so takes no device, so none is looked for.
#include "bindings/nccl/cuda_driver.h"

namespace trestle::nccl {

int device_count() {
  return 0;
}

int current_device() {
  return kNoDevice;
}

OnDevice::OnDevice(int device) : device_(device) {}

OnDevice::~OnDevice() = default;

bool allocate_on(int, size_t, void**) {
  return false;
}

bool free_on(int, void*) {
  return false;
}

int device_of_memory(const void*) {
  return kNoDevice;
}

}  // namespace trestle::nccl
