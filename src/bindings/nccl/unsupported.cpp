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

}  // namespace

NCCL_LACKS(CommShrink, (trestleComm_t, int*, int, trestleComm_t*, void*, int),
           "ranks that take no part cannot be left out. While all ranks live: ncclCommSplit, with "
           "NCCL_SPLIT_NOCOLOR on those to leave out. After a failure: ncclCommAbort, and ncclCommInitRank "
           "among the others with a new id")

NCCL_LACKS(CommRevoke, (trestleComm_t, int),
           "work can only be stopped together with its communicator: use ncclCommAbort, and ncclCommInitRank "
           "with a new id")

NCCL_LACKS(CommGetUniqueId, (trestleComm_t, trestleUniqueId*), kNoGrowth)
NCCL_LACKS(CommGrow, (trestleComm_t, int, const trestleUniqueId*, int, trestleComm_t*, void*), kNoGrowth)
NCCL_LACKS(CommSuspend, (trestleComm_t, int), kNothingToSuspend)
NCCL_LACKS(CommResume, (trestleComm_t), kNothingToSuspend)
NCCL_LACKS(CommWindowRegister, (trestleComm_t, void*, size_t, void**, int), kNoWindows)
NCCL_LACKS(CommWindowDeregister, (trestleComm_t, void*), kNoWindows)
NCCL_LACKS(WinGetUserPtr, (trestleComm_t, void*, void**), kNoWindows)
NCCL_LACKS(PutSignal,
           (const void*, size_t, trestleDataType_t, int, void*, size_t, int, int, unsigned, trestleComm_t, void*),
           kNoOneSided)
NCCL_LACKS(Signal, (int, int, int, unsigned, trestleComm_t, void*), kNoOneSided)
NCCL_LACKS(WaitSignal, (int, void*, trestleComm_t, void*), kNoOneSided)

}  // namespace trestle::nccl
