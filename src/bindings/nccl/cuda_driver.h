// What this library asks of CUDA's driver itself: the calling thread's device, and memory of devices. All else is
// libtrestle.so's.
//
// The driver is used only if the process has loaded it, as a program that uses CUDA has. It is neither loaded nor
// initialised here. Only primary contexts are used, which are the ones of the runtime. Any thread. A build without CUDA
// has without_cuda.cpp instead: there is no device then.
#pragma once

#include <cstddef>

namespace trestle::nccl {

inline constexpr int kNoDevice = -1;  // also CUDA's number for "the processor" (cudaCpuDeviceId)

// 0: the process does not use CUDA. It has not loaded the driver, or nobody has initialised it.
int device_count();
// The calling thread's device, as cudaGetDevice says it. A thread that has chosen none is on device 0, as with CUDA 12
// and newer. kNoDevice: the process does not use CUDA.
int current_device();

// The device's primary context is the thread's current one while this lives.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  bool entered() const { return context_ != nullptr; }
  // The context then stays to the end of the process.
  void keep_context() { keeps_ = true; }

 private:
  [[maybe_unused]] const int device_;
  void* context_ = nullptr;
  bool keeps_ = false;
};

// Memory of a device. False: the driver refuses it.
bool allocate_on(int device, size_t bytes, void** memory);
bool free_on(int device, void* memory);
// The device that has this memory; kNoDevice: none, or nobody knows.
int device_of_memory(const void* memory);

}  // namespace trestle::nccl
