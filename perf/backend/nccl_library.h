// A library with NCCL's C interface, found at run time. No header of NCCL's is needed: these are own declarations of
// the interface's facts (docs/nccl.md). Element types and operators have the numbers of Trestle's.
//
// A plain table of functions, any thread. Result codes are int; 0 is success.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace trestle::perf {

using NcclComm = struct NcclCommunicator*;
struct NcclId {
  char bytes[128];
};

inline constexpr const char* kNcclName = "libnccl.so.2";

// name, arguments. All of these return int. The last argument of collectives, Send and Recv is a CUDA stream.
#define TRESTLE_NCCL_REQUIRED(X)                                                       \
  X(GetVersion, (int*))                                                                \
  X(GetUniqueId, (NcclId*))                                                            \
  X(CommInitRank, (NcclComm*, int nranks, NcclId, int rank))                           \
  X(CommDestroy, (NcclComm))                                                           \
  X(CommGetAsyncError, (NcclComm, int* result))                                        \
  X(GroupStart, ())                                                                    \
  X(GroupEnd, ())                                                                      \
  X(AllReduce, (const void*, void*, size_t, int type, int op, NcclComm, void*))        \
  X(AllGather, (const void*, void*, size_t, int type, NcclComm, void*))                \
  X(ReduceScatter, (const void*, void*, size_t, int type, int op, NcclComm, void*))    \
  X(Broadcast, (const void*, void*, size_t, int type, int root, NcclComm, void*))      \
  X(Reduce, (const void*, void*, size_t, int type, int op, int root, NcclComm, void*)) \
  X(Send, (const void*, size_t, int type, int peer, NcclComm, void*))                  \
  X(Recv, (void*, size_t, int type, int peer, NcclComm, void*))
// Of newer versions. A null pointer: the library has none.
#define TRESTLE_NCCL_OPTIONAL(X)                                                      \
  X(AlltoAll, (const void*, void*, size_t, int type, NcclComm, void*))                \
  X(Gather, (const void*, void*, size_t, int type, int root, NcclComm, void*))        \
  X(Scatter, (const void*, void*, size_t, int type, int root, NcclComm, void*))       \
  X(RedOpCreatePreMulSum, (int* op, void* scalar, int type, int residence, NcclComm)) \
  X(RedOpDestroy, (int op, NcclComm))                                                 \
  X(CommRegister, (NcclComm, void*, size_t, void** handle))                           \
  X(CommDeregister, (NcclComm, void* handle))                                         \
  X(MemAlloc, (void**, size_t))                                                       \
  X(MemFree, (void*))                                                                 \
  X(CommWindowRegister, (NcclComm, void*, size_t, void** window, int flags))          \
  X(CommWindowDeregister, (NcclComm, void* window))

struct NcclLibrary {
#define TRESTLE_NCCL_MEMBER(name, arguments) int(*name) arguments = nullptr;
  TRESTLE_NCCL_REQUIRED(TRESTLE_NCCL_MEMBER)
  TRESTLE_NCCL_OPTIONAL(TRESTLE_NCCL_MEMBER)
#undef TRESTLE_NCCL_MEMBER
  const char* (*GetErrorString)(int) = nullptr;
  const char* (*GetLastError)(NcclComm) = nullptr;  // null before 2.13

  std::string name;                // as it was asked for
  int version = 0;                 // 23007: 2.30.7
  bool takes_host_memory = false;  // it is Trestle's own; NVIDIA's takes memory of GPUs only

  // The result of a call, as a sentence.
  std::string sentence(const char* call, int result, NcclComm comm) const;
};
// "2.30.7".
std::string nccl_version_text(int version);

struct LoadedNccl {
  std::optional<NcclLibrary> library;
  std::string problem;  // a sentence if there is no library
};
// name: a path, or a name that the loader looks for. The library stays loaded.
LoadedNccl load_nccl(const std::string& name);

}  // namespace trestle::perf
