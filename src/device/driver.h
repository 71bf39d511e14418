// The driver's functions, as a table that is filled at run time. Internal to src/device.
//
// CUDA's headers are included here and nowhere else. Their macros rename functions to the version that the header
// describes (cuMemAlloc to cuMemAlloc_v2); a member has the renamed name. Its type and the version that the driver is
// asked for come from one entry of the table, so they cannot differ.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <string>

#include "base/result.h"

// Every function that src/device calls, and the version of CUDA that introduced the signature it is called with. The
// driver hands out the newest signature up to the version that it is asked for: from 12.5 on the name cuStreamGetCtx
// stands for one with three arguments, so the header's own version would be wrong.
#define TRESTLE_DRIVER_FUNCTIONS(X)                    \
  X(cuInit, 2000)                                      \
  X(cuDriverGetVersion, 2020)                          \
  X(cuGetErrorName, 6000)                              \
  X(cuGetErrorString, 6000)                            \
  X(cuDeviceGetCount, 2000)                            \
  X(cuDeviceGet, 2000)                                 \
  X(cuDeviceGetName, 2000)                             \
  X(cuDeviceGetAttribute, 2000)                        \
  X(cuDeviceGetPCIBusId, 4010)                         \
  X(cuDeviceGetByPCIBusId, 4010)                       \
  X(cuDeviceGetP2PAttribute, 8000)                     \
  X(cuDeviceTotalMem, 3020)                            \
  X(cuDevicePrimaryCtxRetain, 7000)                    \
  X(cuDevicePrimaryCtxRelease, 11000)                  \
  X(cuCtxPushCurrent, 4000)                            \
  X(cuCtxPopCurrent, 4000)                             \
  X(cuCtxGetCurrent, 4000)                             \
  X(cuCtxGetDevice, 2000)                              \
  X(cuMemAlloc, 3020)                                  \
  X(cuMemFree, 3020)                                   \
  X(cuMemHostAlloc, 2020)                              \
  X(cuMemFreeHost, 2000)                               \
  X(cuMemHostRegister, 6050)                           \
  X(cuMemHostUnregister, 4000)                         \
  X(cuMemHostGetDevicePointer, 3020)                   \
  X(cuMemGetAddressRange, 3020)                        \
  X(cuMemcpyAsync, 4000)                               \
  X(cuMemsetD8Async, 3020)                             \
  X(cuPointerGetAttributes, 7000)                      \
  X(cuIpcGetMemHandle, 4010)                           \
  X(cuIpcOpenMemHandle, 11000)                         \
  X(cuIpcCloseMemHandle, 4010)                         \
  X(cuIpcGetEventHandle, 4010)                         \
  X(cuIpcOpenEventHandle, 4010)                        \
  X(cuMemCreate, 10020)                                \
  X(cuMemRelease, 10020)                               \
  X(cuMemAddressReserve, 10020)                        \
  X(cuMemAddressFree, 10020)                           \
  X(cuMemMap, 10020)                                   \
  X(cuMemUnmap, 10020)                                 \
  X(cuMemSetAccess, 10020)                             \
  X(cuMemExportToShareableHandle, 10020)               \
  X(cuMemImportFromShareableHandle, 10020)             \
  X(cuMemGetAllocationGranularity, 10020)              \
  X(cuDeviceCanAccessPeer, 4000)                       \
  X(cuCtxEnablePeerAccess, 4000)                       \
  X(cuStreamCreateWithPriority, 5050)                  \
  X(cuCtxGetStreamPriorityRange, 5050)                 \
  X(cuStreamDestroy, 4000)                             \
  X(cuStreamGetCtx, 9020)                              \
  X(cuStreamIsCapturing, 10000)                        \
  X(cuStreamGetCaptureInfo, 12030)                     \
  X(cuUserObjectCreate, 11030)                         \
  X(cuUserObjectRelease, 11030)                        \
  X(cuGraphRetainUserObject, 11030)                    \
  X(cuStreamBeginCapture, 10010)                       \
  X(cuStreamEndCapture, 10000)                         \
  X(cuGraphInstantiateWithFlags, 11040)                \
  X(cuGraphLaunch, 10000)                              \
  X(cuGraphExecDestroy, 10000)                         \
  X(cuGraphDestroy, 10000)                             \
  X(cuThreadExchangeStreamCaptureMode, 10010)          \
  X(cuStreamQuery, 2000)                               \
  X(cuStreamSynchronize, 2000)                         \
  X(cuStreamWaitEvent, 3020)                           \
  X(cuStreamWaitValue32, 11070)                        \
  X(cuStreamWriteValue32, 11070)                       \
  X(cuEventCreate, 2000)                               \
  X(cuEventDestroy, 4000)                              \
  X(cuEventRecord, 2000)                               \
  X(cuEventQuery, 2000)                                \
  X(cuEventElapsedTime, 2000)                          \
  X(cuModuleLoadData, 2000)                            \
  X(cuModuleUnload, 2000)                              \
  X(cuModuleGetFunction, 2000)                         \
  X(cuFuncLoad, 12040)                                 \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuLaunchKernel, 4000)                              \
  X(cuLaunchHostFunc, 10000)

namespace trestle {

struct Driver {
#define TRESTLE_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
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
