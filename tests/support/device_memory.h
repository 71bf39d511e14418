// Memory of a device for tests that run on host memory, or on the device that TRESTLE_DEVICE names: a real one, or that
// of the fake driver (unit/device/fake_driver.h), which such a run finds in place of libcuda.so.1.
#pragma once

#include <cstddef>

namespace device_memory {

// Whether the environment names a device.
bool is_wanted();
// These end the process where there is no such device, or it fails.
std::byte* allocate(size_t bytes);
void free(std::byte* memory);
void copy(std::byte* to, const std::byte* from, size_t bytes);  // between host and device; done on return

}  // namespace device_memory
