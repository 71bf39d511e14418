// The C API: versions, communicators, memory, planning. Only the files in src/api know both the C API and the
// library's classes.
#include <cstring>
#include <vector>

#include "api/background.h"
#include "api/call_config.h"
#include "api/collectives.h"
#include "api/config.h"
#include "api/streams.h"
#include "base/thread.h"
#include "memory/mem_alloc.h"

using namespace trestle;

static_assert(static_cast<int>(kLastCode) == trestleNumResults - 1 &&
              static_cast<int>(Code::kAborted) == trestleAborted &&
              static_cast<int>(Code::kTimeout) == trestleTimeout &&
              static_cast<int>(Code::kInvalidUsage) == trestleInvalidUsage);
static_assert(static_cast<int>(DataType::kFloat8e5m2) == trestleFloat8e5m2 &&
              static_cast<int>(DataType::kBfloat16) == trestleBfloat16);
static_assert(static_cast<int>(ReduceOp::kAvg) == trestleAvg && static_cast<int>(ReduceOp::kMax) == trestleMax);
// tests/unit/tree/collectives_test.cpp compares the collectives.

namespace {

Result<CommunicatorSettings> settings_from(const trestleConfig_t* config) {
  return make_settings(process_config_result(), TRY(read_config(config)));
}

Status init_rank(trestleComm_t* comm, int nranks, const trestleUniqueId& id, int rank, const trestleConfig_t* config) {
  if (comm == nullptr) return invalid_argument("CommInitRank: comm is NULL");
  if (nranks < 1) return invalid_argument("CommInitRank: nranks is " + std::to_string(nranks) + ": at least 1");
  if (rank < 0 || rank >= nranks) {
    return invalid_argument("CommInitRank: rank " + std::to_string(rank) + " is not in 0.." +
                            std::to_string(nranks - 1));
  }
  const CommunicatorSettings settings = TRY(settings_from(config));
  UniqueIdBytes bytes;
  std::memcpy(bytes.data(), id.internal, bytes.size());
  const Creation create = [=](std::atomic<bool>& stop) {
    return Communicator::create(bytes, nranks, rank, settings, stop);
  };
  return create_for(comm, create, settings.blocking);
}

// devlist: the devices of the ranks, or nullptr.
Status init_all(trestleComm_t* comms, int nranks, const trestleConfig_t* config, const int* devlist) {
  if (comms == nullptr) return invalid_argument("CommInitAll: comms is NULL");
  if (nranks < 1) return invalid_argument("CommInitAll: nranks is " + std::to_string(nranks) + ": at least 1");
  std::vector<CommunicatorSettings> settings(static_cast<size_t>(nranks), TRY(settings_from(config)));
  for (int r = 0; r < nranks && devlist != nullptr; ++r) {
    const auto chosen = override_value(settings[r].config, "TRESTLE_DEVICE", std::to_string(devlist[r]));
    if (chosen.ok()) continue;
    return invalid_argument("CommInitAll: devlist[" + std::to_string(r) + "]: " + chosen.error().message);
  }
  auto made = TRY(Communicator::create_all(settings));
  std::vector<ReservedHandle<trestleComm>> handles(made.size());
  for (int r = 0; r < nranks; ++r) comms[r] = handles[r].take(std::move(made[r]));
  return {};
}

trestleResult_t guarded_init_rank(trestleComm_t* comm, int nranks, const trestleUniqueId& id, int rank,
                                  const trestleConfig_t* config) {
  return guarded_in_group([&] {
    if (comm != nullptr && Group::of_this_thread().open()) *comm = nullptr;  // until the group's end has created it
    return init_rank(comm, nranks, id, rank, config);
  });
}

// Ends the handle and waits until no call uses it. nullptr: its communicator was never created.
Result<std::shared_ptr<Communicator>> take(trestleComm_t comm, const char* function, bool abort) {
  if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
  constexpr const char* kEarlier = "destroyed already";
  std::shared_ptr<Communicator> communicator;
  {
    const Use before(comm);
    if (!before.alive() && !before.busy()) return dead_handle(before, function, "communicator", kEarlier);
    end_backgrounds(comm);
    // The creation has ended. If the handle is still busy, another thread has just begun to finalize it.
    Use use(comm);
    if (use.alive() || use.busy()) communicator = use.object();
  }
  if (!end_handle(comm)) return dead_handle(false, function, "communicator", kEarlier);
  run_or_end_process("while a communicator ends", [&] {  // nobody could end it again
    if (abort && communicator != nullptr) communicator->abort();
    wait_for_users(comm);
    end_backgrounds(comm);
    comm->object.reset();
    forget_backgrounds(comm);
    HandlePool<trestleComm>::process().bury(comm);
  });
  return communicator;
}

}  // namespace

extern "C" {

trestleResult_t trestleGetVersion(int* version) {
  return caught([&]() -> Status {
    if (version == nullptr) return invalid_argument("GetVersion: version is NULL");
    *version = TRESTLE_VERSION_CODE;
    return {};
  });
}

trestleResult_t trestleGetUniqueId(trestleUniqueId* id) {
  return guarded([&]() -> Status {
    if (id == nullptr) return invalid_argument("GetUniqueId: id is NULL");
    const Result<Config>& config = process_config_result();
    if (!config.ok()) return config.error();
    const UniqueIdBytes bytes =
        TRY(make_unique_id(bootstrap_config(config.value(), 1, 0, UniqueIdBytes{}), config.value().timeout_ns));
    std::memcpy(id->internal, bytes.data(), bytes.size());
    return {};
  });
}

trestleResult_t trestleCommInitRank(trestleComm_t* comm, int nranks, trestleUniqueId id, int rank) {
  return guarded_init_rank(comm, nranks, id, rank, nullptr);
}

trestleResult_t trestleCommInitRankConfig(trestleComm_t* comm, int nranks, trestleUniqueId id, int rank,
                                          const trestleConfig_t* config) {
  return guarded_init_rank(comm, nranks, id, rank, config);
}

trestleResult_t trestleCommInitAllConfig(trestleComm_t* comms, int nranks, const trestleConfig_t* config) {
  return guarded([&] { return init_all(comms, nranks, config, nullptr); });
}

trestleResult_t trestleCommInitAll(trestleComm_t* comms, int nranks, const int* devlist) {
  return guarded([&] { return init_all(comms, nranks, nullptr, devlist); });
}

trestleResult_t trestleLauncherInfo(int* rank, int* nranks, int* localRank) {
  return guarded([&]() -> Status {
    const Result<Config>& config = process_config_result();
    if (!config.ok()) return config.error();
    const Launcher& launcher = config.value().launcher;
    if (!launcher.problem.empty()) return invalid_usage(launcher.problem);
    if (!launcher.incomplete.empty()) return invalid_usage(launcher.incomplete);
    // Without a launcher: rank 0 of 1.
    if (rank != nullptr) *rank = static_cast<int>(launcher.rank.value_or(0));
    if (nranks != nullptr) *nranks = static_cast<int>(launcher.world_size.value_or(1));
    if (localRank != nullptr) *localRank = static_cast<int>(launcher.local_rank.value_or(0));
    return {};
  });
}

trestleResult_t trestleCommFinalize(trestleComm_t comm) {
  return guarded_in_group(
      [&]() -> Status {
        if (comm == nullptr) return invalid_argument("CommFinalize: comm is NULL");
        Use use(comm);
        TRY(check_ready(use, "CommFinalize"));
        Group& group = Group::of_this_thread();
        const bool blocking = use.object()->settings().blocking;
        if (!group.open() && blocking) return use.object()->finalize();
        TRY(use.object()->check_open());
        if (!group.open()) return begin_finalization(comm, use.object());
        if (blocking) return group.add_finalization(use.object());
        const std::shared_ptr<Communicator> communicator = use.object();
        return group.add_finalization(communicator, [=] { return begin_finalization(comm, communicator); });
      },
      [comm] { fail_without_memory(comm); });
}

trestleResult_t trestleCommDestroy(trestleComm_t comm) {
  return guarded_in_group([&]() -> Status {
    auto communicator = TRY(take(comm, "CommDestroy", false));
    if (communicator == nullptr) return {};
    Group& group = Group::of_this_thread();
    if (group.open()) {
      group.add_destruction(std::move(communicator));
    } else {
      communicator->destroy(kGoodbyeMs);
    }
    return {};
  });
}

trestleResult_t trestleCommAbort(trestleComm_t comm) {
  return guarded([&]() -> Status {
    auto communicator = TRY(take(comm, "CommAbort", true));
    if (communicator != nullptr) communicator->destroy(0);
    return {};
  });
}

trestleResult_t trestleCommGetAsyncError(trestleComm_t comm, trestleResult_t* asyncError) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument("CommGetAsyncError: comm is NULL");
    if (asyncError == nullptr) return invalid_argument("CommGetAsyncError: asyncError is NULL");
    Use use(comm);
    if (!use.alive() && !use.busy()) return dead_handle(use, "CommGetAsyncError", "communicator");
    Failure failure;
    if (use.alive()) {
      use.object()->engine().help();
      failure = use.object()->failure();
    }
    const Status status = failure ? Status(*failure) : background_status(use);
    if (!status.ok()) report(status.error());
    *asyncError = status.ok() ? trestleSuccess : static_cast<trestleResult_t>(status.error().code);
    return {};
  });
}

trestleResult_t trestleCommSynchronize(trestleComm_t comm) {
  return with_comm(comm, "CommSynchronize", [](Communicator& communicator) -> Status {
    const Group& group = Group::of_this_thread();
    if (group.open()) TRY(check_begun("CommSynchronize", "communicator", group.calls_on(communicator)));
    return communicator.synchronize();
  });
}

trestleResult_t trestleCommCount(trestleComm_t comm, int* count) {
  return with_comm(comm, "CommCount", [&](Communicator& communicator) -> Status {
    if (count == nullptr) return invalid_argument("CommCount: count is NULL");
    *count = communicator.ranks();
    return {};
  });
}

trestleResult_t trestleCommUserRank(trestleComm_t comm, int* rank) {
  return with_comm(comm, "CommUserRank", [&](Communicator& communicator) -> Status {
    if (rank == nullptr) return invalid_argument("CommUserRank: rank is NULL");
    *rank = communicator.rank();
    return {};
  });
}

trestleResult_t trestleMemAlloc(void** ptr, size_t size) {
  return guarded([&]() -> Status {
    if (ptr == nullptr) return invalid_argument("MemAlloc: ptr is NULL");
    *ptr = TRY(mem_alloc(size));
    return {};
  });
}

trestleResult_t trestleMemFree(void* ptr) {
  return guarded([&] { return mem_free(ptr); });
}

trestleResult_t trestleShardRanges(trestleComm_t comm, int rank, size_t count, trestleDataType_t type,
                                   trestleRange_t* ranges, int* nranges) {
  return with_comm(comm, "ShardRanges", [&](Communicator& communicator) -> Status {
    if (nranges == nullptr) return invalid_argument("ShardRanges: nranges is NULL");
    if (rank < 0 || rank >= communicator.ranks()) {
      return invalid_argument("ShardRanges: rank " + std::to_string(rank) + " is not in 0.." +
                              std::to_string(communicator.ranks() - 1));
    }
    TRY(checked_type("ShardRanges", type));
    const ElementRange shard = communicator.shard(rank, count);
    if (ranges != nullptr && *nranges >= 1) *ranges = {shard.offset, shard.count};
    *nranges = 1;
    return {};
  });
}

trestleResult_t trestlePredictTime(trestleComm_t comm, trestleCollective_t collective, size_t count,
                                   trestleDataType_t type, double* microseconds) {
  return with_comm(comm, "PredictTime", [&](Communicator& communicator) -> Status {
    if (microseconds == nullptr) return invalid_argument("PredictTime: microseconds is NULL");
    Call call;
    call.request.type = TRY(checked_type("PredictTime", type));
    call.request.count = count;
    call.request.collective = static_cast<Collective>(collective);
    if (static_cast<size_t>(collective) >= kCollectives) {
      return invalid_argument("PredictTime: unknown collective " + std::to_string(collective));
    }
    TRY(check_call(communicator, "PredictTime", call));
    apply_call_config(call);
    *microseconds = TRY(communicator.calls().planner().predict_us(call.request.collective, count, call.request.type,
                                                                  call.request.options));
    return {};
  });
}

}  // extern "C"
