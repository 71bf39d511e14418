// Calls of NCCL for which Trestle has nothing. Each says what to use instead. Programs that never make them need their
// names all the same: a name that is missing keeps them from being loaded.
#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

constexpr const char* kNoGrowth =
    "a communicator cannot get more ranks: make a new one of all ranks with ncclGetUniqueId and ncclCommInitRank";
constexpr const char* kNoWindows =
    "there are no windows: memory of ncclMemAlloc, and memory given to ncclCommRegister, is read in place by ranks of "
    "the same host";
constexpr const char* kNoOneSided = "there are no one-sided operations: use ncclSend and ncclRecv in a group";
constexpr const char* kNothingToSuspend =
    "a communicator keeps its memory, of a device or host memory, until it ends: there is nothing to suspend or to "
    "resume";

Result unsupported(const char* function, const char* why) {
  return refuse(Result::kInvalidUsage, "%s: %s", function, why);
}

}  // namespace

NCCL_API(Result, CommShrink, (trestleComm_t, int*, int, trestleComm_t*, void*, int)) {
  return unsupported("CommShrink",
                     "ranks that take no part cannot be left out. While all ranks live: ncclCommSplit, with "
                     "NCCL_SPLIT_NOCOLOR on those to leave out. After a failure: ncclCommAbort, and ncclCommInitRank "
                     "among the others with a new id");
}

NCCL_API(Result, CommRevoke, (trestleComm_t, int)) {
  return unsupported("CommRevoke",
                     "work can only be stopped together with its communicator: use ncclCommAbort, and ncclCommInitRank "
                     "with a new id");
}

NCCL_API(Result, CommGetUniqueId, (trestleComm_t, trestleUniqueId*)) {
  return unsupported("CommGetUniqueId", kNoGrowth);
}

NCCL_API(Result, CommGrow, (trestleComm_t, int, const trestleUniqueId*, int, trestleComm_t*, void*)) {
  return unsupported("CommGrow", kNoGrowth);
}

NCCL_API(Result, CommSuspend, (trestleComm_t, int)) {
  return unsupported("CommSuspend", kNothingToSuspend);
}

NCCL_API(Result, CommResume, (trestleComm_t)) {
  return unsupported("CommResume", kNothingToSuspend);
}

NCCL_API(Result, CommWindowRegister, (trestleComm_t, void*, size_t, void**, int)) {
  return unsupported("CommWindowRegister", kNoWindows);
}

NCCL_API(Result, CommWindowDeregister, (trestleComm_t, void*)) {
  return unsupported("CommWindowDeregister", kNoWindows);
}

NCCL_API(Result, WinGetUserPtr, (trestleComm_t, void*, void**)) {
  return unsupported("WinGetUserPtr", kNoWindows);
}

NCCL_API(Result, PutSignal,
         (const void*, size_t, trestleDataType_t, int, void*, size_t, int, int, unsigned, trestleComm_t, void*)) {
  return unsupported("PutSignal", kNoOneSided);
}

NCCL_API(Result, Signal, (int, int, int, unsigned, trestleComm_t, void*)) {
  return unsupported("Signal", kNoOneSided);
}

NCCL_API(Result, WaitSignal, (int, void*, trestleComm_t, void*)) {
  return unsupported("WaitSignal", kNoOneSided);
}

}  // namespace trestle::nccl
