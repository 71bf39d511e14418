// The driver's functions, as a table that is filled at run time. Internal to src/device.
//
// CUDA's headers are included here and nowhere else. Their macros rename functions to the version that the header
// describes (cuMemAlloc to cuMemAlloc_v2); a member has the renamed name, and the driver is asked for the version of
// this header.
#pragma once

#include <cuda.h>

#include <string>

#include "base/result.h"

// Every function that src/device calls.
#define TRESTLE_DRIVER_FUNCTIONS(X)              \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceGetPCIBusId)                         \
  X(cuDeviceTotalMem)                            \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxPushCurrent)                            \
  X(cuCtxPopCurrent)                             \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemHostAlloc)                              \
  X(cuMemFreeHost)                               \
  X(cuMemHostRegister)                           \
  X(cuMemHostUnregister)                         \
  X(cuMemGetAddressRange)                        \
  X(cuMemcpyAsync)                               \
  X(cuMemsetD8Async)                             \
  X(cuPointerGetAttributes)                      \
  X(cuIpcGetMemHandle)                           \
  X(cuIpcOpenMemHandle)                          \
  X(cuIpcCloseMemHandle)                         \
  X(cuIpcGetEventHandle)                         \
  X(cuIpcOpenEventHandle)                        \
  X(cuDeviceCanAccessPeer)                       \
  X(cuCtxEnablePeerAccess)                       \
  X(cuStreamCreateWithPriority)                  \
  X(cuCtxGetStreamPriorityRange)                 \
  X(cuStreamDestroy)                             \
  X(cuStreamGetCtx)                              \
  X(cuStreamIsCapturing)                         \
  X(cuStreamQuery)                               \
  X(cuStreamSynchronize)                         \
  X(cuStreamWaitEvent)                           \
  X(cuStreamWaitValue32)                         \
  X(cuStreamWriteValue32)                        \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventQuery)                                \
  X(cuEventElapsedTime)                          \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncLoad)                                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuLaunchKernel)                              \
  X(cuLaunchHostFunc)

namespace trestle {

struct Driver {
#define TRESTLE_MEMBER(name) decltype(&::name) name = nullptr;
  TRESTLE_DRIVER_FUNCTIONS(TRESTLE_MEMBER)
#undef TRESTLE_MEMBER
  int version = 0;

  // The driver's answer as a Status. `call`: the function's name.
  Status check(CUresult result, const char* call) const;
  Error failed(CUresult result, const char* call) const;
};

// Loads the library and fills in the table. It is loaded once per path and stays. kInvalidUsage with a sentence: it is
// not there, lacks a function, or is older than the toolkit that built this library.
Result<Driver> load_driver(const char* library);

}  // namespace trestle
