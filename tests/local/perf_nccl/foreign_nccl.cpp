// A library with NCCL's interface that the perf binaries take for NVIDIA's: it does not need libtrestle. Everything is
// forwarded to the library that FOREIGN_NCCL_OVER names; FOREIGN_NCCL_VERSION is the version that it tells. So buffers
// must be memory of GPUs, which a fake driver has.
#include <cstdio>
#include <cstdlib>

#include "perf/backend/nccl_library.h"

namespace {

using trestle::perf::NcclComm;
using trestle::perf::NcclId;
using trestle::perf::NcclLibrary;

const NcclLibrary& other() {
  static const NcclLibrary library = [] {
    const char* const name = std::getenv("FOREIGN_NCCL_OVER");
    const trestle::perf::LoadedNccl loaded = trestle::perf::load_nccl(name != nullptr ? name : "");
    if (!loaded.library) {
      std::fprintf(stderr, "foreign_nccl: %s\n", loaded.problem.c_str());
      std::abort();
    }
    return *loaded.library;
  }();
  return library;
}

}  // namespace

#define FORWARD(name, parameters, arguments)                                    \
  extern "C" __attribute__((visibility("default"))) int nccl##name parameters { \
    return other().name arguments;                                              \
  }

extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  const char* const told = std::getenv("FOREIGN_NCCL_VERSION");
  *version = told != nullptr ? std::atoi(told) : 23007;
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetErrorString(int result) {
  return other().GetErrorString(result);
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(NcclComm comm) {
  return other().GetLastError(comm);
}
FORWARD(GetUniqueId, (NcclId * id), (id))
FORWARD(CommInitRank, (NcclComm * comm, int n, NcclId id, int rank), (comm, n, id, rank))
FORWARD(CommDestroy, (NcclComm comm), (comm))
FORWARD(CommGetAsyncError, (NcclComm comm, int* result), (comm, result))
FORWARD(GroupStart, (), ())
FORWARD(GroupEnd, (), ())
FORWARD(AllReduce, (const void* s, void* r, size_t n, int type, int op, NcclComm comm, void* stream),
        (s, r, n, type, op, comm, stream))
FORWARD(AllGather, (const void* s, void* r, size_t n, int type, NcclComm comm, void* stream),
        (s, r, n, type, comm, stream))
FORWARD(ReduceScatter, (const void* s, void* r, size_t n, int type, int op, NcclComm comm, void* stream),
        (s, r, n, type, op, comm, stream))
FORWARD(Broadcast, (const void* s, void* r, size_t n, int type, int root, NcclComm comm, void* stream),
        (s, r, n, type, root, comm, stream))
FORWARD(Reduce, (const void* s, void* r, size_t n, int type, int op, int root, NcclComm comm, void* stream),
        (s, r, n, type, op, root, comm, stream))
FORWARD(Send, (const void* s, size_t n, int type, int peer, NcclComm comm, void* stream),
        (s, n, type, peer, comm, stream))
FORWARD(Recv, (void* r, size_t n, int type, int peer, NcclComm comm, void* stream), (r, n, type, peer, comm, stream))
FORWARD(CommRegister, (NcclComm comm, void* buffer, size_t bytes, void** handle), (comm, buffer, bytes, handle))
FORWARD(CommDeregister, (NcclComm comm, void* handle), (comm, handle))
