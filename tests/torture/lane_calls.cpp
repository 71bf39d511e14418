// Calls, groups and requests of a lane.
#include <sched.h>

#include "torture/lane.h"

namespace torture {
namespace {

// Scopes with call configurations. 0 is none.
struct Scope {
  Scope(int config, bool endless) : config_(config) {
    if (config == 0) return;
    trestleCallConfig_t c = TRESTLE_CALL_CONFIG_INITIALIZER;
    if (config == 1) c.sched = "baseline";
    if (config == 2) c.sched = "themis", c.chunks = 4;
    if (config == 3) c.algo = "";
    if (config == 4) c.deterministic = 1;
    if (config == 5) c.chunks = 3, c.timeoutMs = endless ? 0 : -1;
    pushed_ = trestleCallConfigPush(&c) == trestleSuccess;
  }
  ~Scope() {
    if (pushed_) trestleCallConfigPop();
  }
  bool ok() const { return config_ == 0 || pushed_; }

 private:
  const int config_;
  bool pushed_ = false;
};

}  // namespace

int Lane::stream_of(const Call& call) const {
  if (call.stream != kAnyStream) return call.stream;
  return static_cast<int>(mix(call.seed, static_cast<uint64_t>(rank_)) % static_cast<uint64_t>(plan_.streams + 1));
}

// A message concerns two ranks only.
bool Lane::is_mine(const Call& call) const {
  const int rank = program_.rank_in(call.comm, rank_);
  if (rank < 0) return false;
  return call.collective != trestleCollSendRecv || rank == call.root || rank == call.peer;
}

// If the arenas are full, all calls are awaited and verified first.
std::unique_ptr<Execution> Lane::prepare(const Call& call, const Execution* first) {
  const int rank = program_.rank_in(call.comm, rank_);
  const int ranks = program_.size_of(call.comm);
  auto execution = std::make_unique<Execution>(call, rank, ranks, arenas_, first);
  if (!execution->placed()) wrong("the torture's own arenas are too small for " + to_string(call));
  if (!good(execution->make_operator(comms_[static_cast<size_t>(call.comm)]), "RedOpCreate")) return nullptr;
  return execution;
}

void Lane::remember(std::unique_ptr<Execution> execution, int comm, int stream) {
  pending_.push_back({std::move(execution), comm, stream, ++turn_});
  lane_.calls.fetch_add(1);
}

bool Lane::enqueue(const Call& call, const Execution* first, bool keep_operator) {
  if (!is_mine(call)) return true;
  const trestleComm_t comm = comms_[static_cast<size_t>(call.comm)];
  const int stream = stream_of(call);
  auto execution = prepare(call, first);
  if (execution == nullptr) return false;
  const Scope scope(call.collective == trestleCollSendRecv ? 0 : call.config, plan_.may_wait_forever());
  if (!scope.ok()) wrong("CallConfigPush failed");
  Execution& running = *execution;
  const trestleResult_t result = running.start(comm, handle_of(stream));
  // After a failed call the memory must outlive the communicator, because the call may be in flight.
  remember(std::move(execution), call.comm, stream);
  if (!good(result, to_string(call).c_str())) return false;
  return keep_operator || call.seed % 4 == 0 || good(running.drop_operator(comm), "RedOpDestroy");
}

void Lane::verify(Execution& execution) {
  const std::string text = execution.verify();
  if (!text.empty()) wrong(text);
  const Call& call = execution.call();
  if (call.exact || !reduces(call.collective)) return;
  const uint64_t sum = execution.checksum() | 1;
  // The order of verification depends on timing, the number of calls does not.
  lane_.checksum.fetch_add(mix(sum, static_cast<uint64_t>(call.id)));
  if (call.collective != trestleCollAllReduce) return;
  uint64_t before = 0;
  std::atomic<uint64_t>& slot = board_.sum[thread_][static_cast<size_t>(call.id) % (kMaxActions * 8)];
  if (!slot.compare_exchange_strong(before, sum) && before != sum)
    wrong(to_string(call) + ": other bits than on another rank");
}

bool Lane::do_call(const Call& call) {
  if (!make_room({call})) return false;
  return enqueue(call);
}

// All calls of a group progress together, even if they share a stream.
bool Lane::do_group(const Action& action) {
  if (!make_room(action.calls)) return false;
  if (!good(trestleGroupStart(), "GroupStart")) return false;
  if (action.variant && !good(trestleGroupStart(), "GroupStart")) return false;
  bool ok = true;
  for (size_t i = 0; i < action.calls.size() && ok; ++i) {
    if (action.variant && i == action.calls.size() / 2) ok = good(trestleGroupEnd(), "inner GroupEnd");
    ok = ok && enqueue(action.calls[i], nullptr, true);
  }
  if (action.variant && action.calls.empty()) ok = good(trestleGroupEnd(), "inner GroupEnd");
  const trestleResult_t result = trestleGroupEnd();
  return ok && good(result, "GroupEnd");
}

bool Lane::do_chain(const Action& action) {
  const Call& first = action.calls[0];
  const Call& second = action.calls[1];
  if (!make_room(action.calls) || !enqueue(first)) return false;
  const Execution* const before = pending_.back().execution.get();
  if (second.stream != first.stream) {
    const auto e = static_cast<size_t>(action.number);
    if (!good(trestleEventRecord(events_[e], handle_of(first.stream)), "EventRecord")) return false;
    marks_[e] = {first.stream, turn_};
    if (!good(trestleStreamWaitEvent(handle_of(second.stream), events_[e]), "StreamWaitEvent")) return false;
    awaited_[static_cast<size_t>(second.stream)].push_back({{first.stream, turn_}, turn_});
  }
  return enqueue(second, before);
}

bool Lane::await(trestleRequest_t request, bool by_test) {
  if (!by_test) return good(trestleRequestWait(request), "RequestWait");
  for (int done = 0; done == 0;) {
    if (!good(trestleRequestTest(request, &done), "RequestTest")) return false;
    if (done == 0) sched_yield();
  }
  return true;
}

bool Lane::do_persistent(const Action& action) {
  const Call& call = action.calls[0];
  if (!make_room(action.calls)) return false;
  const trestleComm_t comm = comms_[static_cast<size_t>(call.comm)];
  const int stream = stream_of(call);
  auto kept = prepare(call);
  if (kept == nullptr) return false;
  Execution& execution = *kept;
  const bool halves = call.collective == trestleCollAllReduce && action.number % 2 == 0;
  trestleRequest_t request = nullptr;
  {
    const Scope scope(call.config, plan_.may_wait_forever());
    const trestleResult_t made = halves ? execution.init_halves(comm, handle_of(stream), &request)
                                        : execution.init(comm, handle_of(stream), &request);
    if (!good(made, to_string(call).c_str())) return false;
  }
  if (!good(execution.drop_operator(comm), "RedOpDestroy")) return false;
  // Kept in any case, because a failed request may still be in flight.
  remember(std::move(kept), call.comm, stream);
  for (int i = 0; i < action.number; ++i) {
    if (i > 0) execution.refill();
    if (!good(trestleRequestStart(request), "RequestStart")) return false;
    lane_.calls.fetch_add(1);
    if (halves) {
      if (i % 2 == 0 && !await(request, action.variant)) return false;
      if (!good(trestleAllReduceFinish(request, handle_of(stream)), "AllReduceFinish")) return false;
    }
    if (!await(request, action.variant)) return false;
    verify(execution);
  }
  return good(trestleRequestFree(request), "RequestFree");
}

// Gets the shards of all ranks, which must be a partition of the buffer.
bool Lane::halves(const Action& action, Execution& execution) {
  const Call& call = action.calls[0];
  const trestleComm_t comm = comms_[static_cast<size_t>(call.comm)];
  std::vector<std::vector<trestleRange_t>> shards;
  std::vector<uint8_t> covered(call.count);
  for (int r = 0; r < program_.size_of(call.comm); ++r) {
    int n = 0;
    if (!good(trestleShardRanges(comm, r, call.count, call.type, nullptr, &n), "ShardRanges")) return false;
    shards.emplace_back(static_cast<size_t>(n));
    if (!good(trestleShardRanges(comm, r, call.count, call.type, shards.back().data(), &n), "ShardRanges"))
      return false;
    for (const trestleRange_t& range : shards.back()) {
      if (range.offset + range.count > call.count) wrong("a shard ends behind the buffer");
      for (size_t i = 0; i < range.count; ++i) {
        if (covered[range.offset + i]++ != 0) wrong("shards overlap");
      }
    }
  }
  for (const uint8_t one : covered) {
    if (one == 0) wrong("an element is in no rank's shard");
  }
  const auto& mine = shards[static_cast<size_t>(program_.rank_in(call.comm, rank_))];
  const std::string text = execution.verify_shard(mine);
  if (!text.empty()) wrong(text);
  execution.replace_shard(mine);
  execution.expect_replaced(shards);
  return true;
}

bool Lane::do_decomposed(const Action& action) {
  const Call& call = action.calls[0];
  if (!make_room(action.calls)) return false;
  const trestleComm_t comm = comms_[static_cast<size_t>(call.comm)];
  const int stream = stream_of(call);
  auto kept = prepare(call);
  if (kept == nullptr) return false;
  Execution& execution = *kept;
  remember(std::move(kept), call.comm, stream);
  const AnyCall made = execution.made();
  trestleRequest_t request = nullptr;
  {
    const Scope scope(call.config, plan_.may_wait_forever());
    if (!good(trestleAllReduceStart(made.send, made.recv, call.count, call.type, made.op, comm, handle_of(stream),
                                    &request),
              to_string(call).c_str()))
      return false;
  }
  if (!good(execution.drop_operator(comm), "RedOpDestroy")) return false;
  const bool by_test = action.number % 2 == 1;
  if (action.number >= 2) {
    if (!await(request, by_test) || !halves(action, execution)) return false;
  }
  if (!good(trestleAllReduceFinish(request, handle_of(stream)), "AllReduceFinish")) return false;
  if (!await(request, by_test)) return false;
  verify(execution);
  return good(trestleRequestFree(request), "RequestFree");
}

}  // namespace torture
