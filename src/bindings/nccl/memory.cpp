// Memory: allocation, registration, statistics.
#include "bindings/nccl/answers.h"
#include "bindings/nccl/cuda_driver.h"
#include "trestle/cuda.h"

namespace trestle::nccl {

namespace {

// The handle of memory that is used as it is. libtrestle.so never gives this address as a handle.
char unregistered = 0;

}  // namespace

// Memory of the device that a communicator made here would have. Its address means nothing to the processor.
NCCL_API(Result, MemAlloc, (void** ptr, size_t size)) {
  int device = kNoDevice;
  const trestleResult_t asked = trestleConfiguredDevice(&device);
  if (asked != trestleSuccess) return answer(asked);
  if (device == TRESTLE_CONFIG_UNDEF_INT) device = current_device();
  if (device == kNoDevice || ptr == nullptr) return answer(trestleMemAlloc(ptr, size));
  if (size == 0) return refuse(Result::kInvalidArgument, "MemAlloc: size is 0");
  if (allocate_on(device, size, ptr)) return Result::kSuccess;
  return refuse(Result::kUnhandledCudaError,
                "MemAlloc: CUDA gives no %zu bytes on device %d: there is no such device, or not so much memory", size,
                device);
}

NCCL_API(Result, MemFree, (void* ptr)) {
  const int device = ptr != nullptr ? device_of_memory(ptr) : kNoDevice;
  if (device == kNoDevice) return answer(trestleMemFree(ptr));
  if (free_on(device, ptr)) return Result::kSuccess;
  return refuse(Result::kUnhandledCudaError,
                "MemFree: CUDA does not free %p on device %d: is it an allocation's begin?", ptr, device);
}

// Succeeds for any memory, as programs expect that register whatever they have. Memory that peers cannot map is used
// as ordinary memory.
NCCL_API(Result, CommRegister, (trestleComm_t comm, void* buff, size_t size, void** handle)) {
  int rank = 0;
  const Result usable = answer(trestleCommUserRank(comm, &rank));
  if (usable != Result::kSuccess) return usable;
  if (handle == nullptr) return refuse(Result::kInvalidArgument, "CommRegister: handle is NULL");
  const trestleResult_t registered = trestleCommRegister(comm, buff, size, handle);
  if (registered == trestleSuccess) {
    remark("CommRegister: %zu bytes at %p: ranks of the same host read them in place", size, buff);
    return Result::kSuccess;
  }
  if (registered != trestleInvalidArgument && registered != trestleInvalidUsage) return answer(registered);
  remark("CommRegister: %zu bytes at %p are used as they are, which works as well: %s", size, buff,
         trestleGetLastError(nullptr));
  *handle = &unregistered;
  return Result::kSuccess;
}

NCCL_API(Result, CommDeregister, (trestleComm_t comm, void* handle)) {
  if (handle != &unregistered) return answer(trestleCommDeregister(comm, handle));
  int rank = 0;
  return answer(trestleCommUserRank(comm, &rank));
}

// Statistics of device memory: what a communicator with a device holds for partial results.
NCCL_API(Result, CommMemStats, (trestleComm_t comm, int stat, uint64_t* value)) {
  constexpr int kFirstHeld = 2;  // ncclStatGpuMemPersist
  constexpr int kLastStatistic = 3;
  int device = kNoDevice;
  int rank = 0;
  const Result usable = answer(trestleCommUserRank(comm, &rank));
  if (usable != Result::kSuccess) return usable;
  if (value == nullptr) return refuse(Result::kInvalidArgument, "CommMemStats: value is NULL");
  if (stat < 0 || stat > kLastStatistic) {
    return refuse(Result::kInvalidArgument, "CommMemStats: stat is %d: 0 to %d", stat, kLastStatistic);
  }
  const Result asked = answer(trestleCommDevice(comm, &device));
  if (asked != Result::kSuccess) return asked;
  if (device != kNoDevice && stat >= kFirstHeld) return answer(trestleCommMemStats(comm, trestleMemStaging, value));
  *value = 0;
  return Result::kSuccess;
}

}  // namespace trestle::nccl
