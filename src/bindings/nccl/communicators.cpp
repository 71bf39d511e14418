// Communicators: ids, joining, splitting, ending, queries.
#include <cstdlib>

#include "bindings/nccl/answers.h"
#include "bindings/nccl/config.h"
#include "bindings/nccl/cuda_driver.h"
#include "bindings/nccl/groups.h"
#include "trestle/cuda.h"

namespace trestle::nccl {

namespace {

// What TRESTLE_DEVICE says; TRESTLE_CONFIG_UNDEF_INT: nothing. It cannot be read: the creation says why.
int configured_device() {
  int device = TRESTLE_CONFIG_UNDEF_INT;
  return trestleConfiguredDevice(&device) == trestleSuccess ? device : TRESTLE_CONFIG_UNDEF_INT;
}

Result join(const char* function, trestleComm_t* comm, int nranks, const trestleUniqueId& id, int rank,
            const Config* config) {
  trestleConfig_t ours = TRESTLE_CONFIG_INITIALIZER;
  if (config != nullptr) {
    const Result read = read_config(function, config, &ours);
    if (read != Result::kSuccess) return read;
  }
  const bool is_chosen = configured_device() != TRESTLE_CONFIG_UNDEF_INT;
  if (!is_chosen) ours.device = current_device();
  return answer(trestleCommInitRankConfig(comm, nranks, id, rank, &ours));
}

// Without a list the ranks are on the devices 0, 1, ..., as in NCCL.
Result join_all(trestleComm_t* comm, int ndev) {
  auto* const devices = static_cast<int*>(std::calloc(static_cast<size_t>(ndev), sizeof(int)));
  if (devices == nullptr) return refuse(Result::kSystemError, "CommInitAll: out of memory for %d devices", ndev);
  for (int r = 0; r < ndev; ++r) devices[r] = r;
  const Result made = answer(trestleCommInitAll(comm, ndev, devices));
  std::free(devices);
  return made;
}

}  // namespace

NCCL_API(Result, GetUniqueId, (trestleUniqueId * uniqueId)) {
  return answer(trestleGetUniqueId(uniqueId));
}

NCCL_API(Result, CommInitRank, (trestleComm_t * comm, int nranks, trestleUniqueId commId, int rank)) {
  return join("CommInitRank", comm, nranks, commId, rank, nullptr);
}

NCCL_API(Result, CommInitRankConfig,
         (trestleComm_t * comm, int nranks, trestleUniqueId commId, int rank, Config* config)) {
  return join("CommInitRankConfig", comm, nranks, commId, rank, config);
}

// All ranks meet at the first id. The others would only spread the load of a rendezvous.
NCCL_API(Result, CommInitRankScalable,
         (trestleComm_t * newcomm, int nranks, int myrank, int nId, trestleUniqueId* commIds, Config* config)) {
  if (commIds == nullptr) return refuse(Result::kInvalidArgument, "CommInitRankScalable: commIds is NULL");
  if (nId < 1 || nId > nranks) {
    return refuse(Result::kInvalidArgument, "CommInitRankScalable: nId is %d: 1 to nranks, which is %d", nId, nranks);
  }
  return join("CommInitRankScalable", newcomm, nranks, commIds[0], myrank, config);
}

NCCL_API(Result, CommInitAll, (trestleComm_t * comm, int ndev, const int* devlist)) {
  const int chosen = configured_device();
  const bool on_devices = chosen >= 0 || (chosen != kNoDevice && device_count() > 0);
  if (on_devices && devlist != nullptr) return answer(trestleCommInitAll(comm, ndev, devlist));
  if (on_devices && chosen < 0 && ndev > 0) return join_all(comm, ndev);
  const Result made = answer(trestleCommInitAll(comm, ndev, nullptr));
  if (made == Result::kSuccess && devlist != nullptr) {
    remark(
        "CommInitAll: the numbers in devlist have no effect: the ranks have host memory, because the process does not "
        "use CUDA, Trestle was built without it, or TRESTLE_DEVICE is -1");
  }
  return made;
}

NCCL_API(Result, CommSplit, (trestleComm_t comm, int color, int key, trestleComm_t* newcomm, Config* config)) {
  trestleConfig_t ours = TRESTLE_CONFIG_INITIALIZER;
  if (config != nullptr) {
    const Result read = read_config("CommSplit", config, &ours);
    if (read != Result::kSuccess) return read;
  }
  return answer(trestleCommSplit(comm, color, key, newcomm, config != nullptr ? &ours : nullptr));
}

// As in NCCL, ending a communicator that is NULL is no mistake.
NCCL_API(Result, CommFinalize, (trestleComm_t comm)) {
  if (comm == nullptr) return Result::kSuccess;
  const Result finalized = answer(trestleCommFinalize(comm));
  if (finalized == Result::kSuccess || finalized == Result::kInProgress) forget_calls_on(comm);
  return finalized;
}

NCCL_API(Result, CommDestroy, (trestleComm_t comm)) {
  if (comm == nullptr) return Result::kSuccess;
  forget_calls_on(comm);
  take_streams_of(comm);
  const Result destroyed = answer(trestleCommDestroy(comm));
  end_taken_streams();
  return destroyed;
}

NCCL_API(Result, CommAbort, (trestleComm_t comm)) {
  if (comm == nullptr) return Result::kSuccess;
  forget_calls_on(comm);
  take_streams_of(comm);
  const Result aborted = answer(trestleCommAbort(comm));
  end_taken_streams();
  return aborted;
}

NCCL_API(Result, CommGetAsyncError, (trestleComm_t comm, Result* asyncError)) {
  trestleResult_t state = trestleSuccess;
  const Result asked = answer(trestleCommGetAsyncError(comm, asyncError != nullptr ? &state : nullptr));
  if (asked == Result::kSuccess) *asyncError = answer(state);
  return asked;
}

NCCL_API(Result, CommCount, (trestleComm_t comm, int* count)) {
  return answer(trestleCommCount(comm, count));
}

NCCL_API(Result, CommUserRank, (trestleComm_t comm, int* rank)) {
  return answer(trestleCommUserRank(comm, rank));
}

NCCL_API(Result, CommCuDevice, (trestleComm_t comm, int* device)) {
  if (device != nullptr) return answer(trestleCommDevice(comm, device));
  int rank = 0;
  const Result usable = answer(trestleCommUserRank(comm, &rank));
  return usable != Result::kSuccess ? usable : refuse(Result::kInvalidArgument, "CommCuDevice: device is NULL");
}

}  // namespace trestle::nccl
