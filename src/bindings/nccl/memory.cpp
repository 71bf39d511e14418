// Memory: allocation, registration, statistics.
#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

// The handle of memory that is used as it is. libtrestle.so never gives this address as a handle.
char unregistered = 0;

}  // namespace

NCCL_API(Result, MemAlloc, (void** ptr, size_t size)) {
  return answer(trestleMemAlloc(ptr, size));
}

NCCL_API(Result, MemFree, (void* ptr)) {
  return answer(trestleMemFree(ptr));
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

// Statistics of device memory, of which there is none.
NCCL_API(Result, CommMemStats, (trestleComm_t comm, int stat, uint64_t* value)) {
  constexpr int kLastStatistic = 3;
  int rank = 0;
  const Result usable = answer(trestleCommUserRank(comm, &rank));
  if (usable != Result::kSuccess) return usable;
  if (value == nullptr) return refuse(Result::kInvalidArgument, "CommMemStats: value is NULL");
  if (stat < 0 || stat > kLastStatistic) {
    return refuse(Result::kInvalidArgument, "CommMemStats: stat is %d: 0 to %d", stat, kLastStatistic);
  }
  *value = 0;
  return Result::kSuccess;
}

}  // namespace trestle::nccl
