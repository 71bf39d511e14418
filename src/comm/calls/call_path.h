// CallPath: the way of a call from the API into a stream: its place in the order of calls, its plans, and its start at
// once or as an operation.
//
// Owned by the communicator. Any thread. submit_mutex_ serialises the calls in call order. No thread waits while it
// holds the mutex, except for the short spin of the express path. Lock order: the mutexes of MeshPoller and
// CaptureBook, submit_mutex_, then those of the stream, the engine, the caches, CallCheck and the control mesh. The
// caller checks whether the communicator takes calls at all (Communicator::check_open). If std::bad_alloc leaves one of
// these functions, it must fail the communicator (Engine::fail_without_memory): the call may have its number, and then
// other ranks wait for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/calls/call.h"
#include "comm/calls/call_check.h"
#include "comm/calls/call_planner.h"
#include "comm/calls/custom_ops.h"
#include "comm/membership/membership.h"
#include "control_mesh/control_mesh.h"
#include "engine/prepare/call_bytes.h"
#include "engine/run/engine.h"
#include "memory/registrations.h"

namespace trestle {

class CallPath {
 public:
  // References to what outlives it. memory: shared with the transports. own_stream: the communicator's, which log lines
  // name as such.
  CallPath(const Membership& membership, Engine& engine, ControlMesh& mesh, std::shared_ptr<MemRegistrations> memory,
           const Stream& own_stream);
  CallPath(const CallPath&) = delete;
  CallPath& operator=(const CallPath&) = delete;

  CallPlanner& planner() { return planner_; }
  CustomOps& custom_ops() { return custom_ops_; }
  const CustomOps& custom_ops() const { return custom_ops_; }
  // What the user has registered.
  MemRegistrations& memory() const { return *memory_; }

  // Enqueues one call, alone in its item of the stream.
  Status submit(const Call& call, const std::shared_ptr<Stream>& stream);

  // Two steps for groups: planner().prepare() may fail, commit() cannot. `stream`: the one that the operation will be
  // put on; `ahead`: from number_ahead().
  Operation* commit(const Call& call, const PreparedCall& prepared, Stream& stream, std::optional<uint64_t> ahead);
  void committed();  // to be called after the operations were put on streams
  // The number that a call must take before it is committed, because a split that takes a number comes after it. Only
  // where calls are checked.
  std::optional<uint64_t> number_ahead(const Call& call);
  // Replaces these steps for a call without any data. Such a call does nothing, but it is compared where calls are
  // checked.
  void skip(const Call& call, const Stream& stream, std::optional<uint64_t> ahead = {});

  // The number of a call that is captured into a graph, before its first replay (base/operation_number.h): captures are
  // counted in the order in which they are made, which is the same on all ranks. Error: there were too many.
  Result<uint64_t> number_capture(const Call& call);
  // Nothing replays it any more.
  void forget_capture(const Call& call, uint64_t number);

  // Splits and the finalization are not operations, but take a place among the calls where these are checked. Splits
  // are also counted among themselves, in the order of the calls, which is the same on all ranks.
  uint64_t number_split();
  void number_finalization();

  // One more than the number of the latest call that this rank has made among those that are numbered together with
  // `like`; 0: it has made none. Collectives are numbered together, messages with one peer in one direction, and
  // replays of one capture. If that capture's graph has ended, the replay `like` counts as made. The result does not
  // have the bit that marks numbers of messages (kPointToPoint).
  uint64_t calls_made(const OperationKey& like);
  // Whether the split of that number was called.
  bool has_called_split(uint64_t number);

  // TRESTLE_CHECK: compares another rank's call, from its letter, with this rank's. The communicator fails if they
  // differ.
  void compare_call(int32_t from, const std::string& letter);

  // Fails while operations are under way. Works also after a failure of the communicator: the operations have ended
  // then.
  Status deregister_memory(uint64_t id);

 private:
  Status submit_express(const Call& call, const std::shared_ptr<Stream>& stream) TRESTLE_REQUIRES(submit_mutex_);
  ExpressCall express_call(const Call& call, uint64_t number, uint64_t sequence);
  bool run_express(ExpressCall& express);
  Operation* bind(const Call& call, const PreparedCall& prepared, bool over_board, std::optional<uint64_t> ahead = {})
      TRESTLE_REQUIRES(submit_mutex_);
  void enqueue(Operation* operation, Stream& stream, StreamEntry entry = {});
  Status submit_prepared(const Call& call, const std::shared_ptr<Stream>& stream);
  Status submit_kernel(const Call& call, const PreparedCall& prepared, const std::shared_ptr<Stream>& stream)
      TRESTLE_REQUIRES(outer_mutex_);
  void drop_unmapped(const Call& call, const CallBytes& reach);

  uint64_t& next_number_of(int32_t peer, bool sending) TRESTLE_REQUIRES(submit_mutex_) {
    return peer < 0 ? next_number_ : (sending ? sent_ : received_)[static_cast<size_t>(peer)];
  }
  uint64_t take_number(const Call& call) TRESTLE_REQUIRES(submit_mutex_);
  void count_replay(const Call& call, uint64_t number) TRESTLE_REQUIRES(submit_mutex_);
  void announce_if_checked(const Call& call, uint64_t number) TRESTLE_REQUIRES(submit_mutex_);
  void take_number_if_checked(const char* function) TRESTLE_REQUIRES(submit_mutex_);
  // TRESTLE_CHECK: tells another rank of a call of this one, and compares it with what that rank has told.
  void announce_call(const OperationKey& operation, const CallSummary& summary);

  // A call that is about to be submitted. `numbered`: logs the number that take_number() will give it, unless it has
  // one already (`ahead`); false: logs no number.
  void log_at_info(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead = {})
      TRESTLE_REQUIRES(submit_mutex_) {
    if (log_enabled(LogLevel::kInfo, Subsystem::kCall)) [[unlikely]]
      log_numbered(call, stream, numbered, ahead);
  }
  void log_numbered(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead)
      TRESTLE_REQUIRES(submit_mutex_);
  void log_if_first(const Call& call) TRESTLE_REQUIRES(submit_mutex_);

  const Membership& membership_;
  Engine& engine_;
  ControlMesh& mesh_;
  const std::shared_ptr<MemRegistrations> memory_;
  const Stream& own_stream_;
  const std::unique_ptr<CallCheck> call_check_;  // or nullptr
  CustomOps custom_ops_;
  CallPlanner planner_;

  // Held by calls on streams with an outer stream, from their place there until they are enqueued: so they are executed
  // in the order of their numbers. A thread may wait for the outer stream while it holds it.
  Mutex outer_mutex_ TRESTLE_ACQUIRED_BEFORE(submit_mutex_);
  Mutex submit_mutex_;
  uint64_t next_number_ TRESTLE_GUARDED_BY(submit_mutex_) = 0;
  uint64_t next_split_ TRESTLE_GUARDED_BY(submit_mutex_) = 0;
  std::vector<uint64_t> sent_ TRESTLE_GUARDED_BY(submit_mutex_);  // point-to-point messages per peer
  std::vector<uint64_t> received_ TRESTLE_GUARDED_BY(submit_mutex_);
  // Captures of collectives (peer -1), or of messages per peer and direction; by capture, one more than the latest
  // replay's number.
  std::map<std::pair<int32_t, bool>, uint64_t> captures_ TRESTLE_GUARDED_BY(submit_mutex_);
  std::map<std::tuple<int32_t, bool, uint64_t>, uint64_t> replays_ TRESTLE_GUARDED_BY(submit_mutex_);
  std::set<std::pair<int32_t, bool>> logged_pairs_ TRESTLE_GUARDED_BY(submit_mutex_);  // peer, sending
};

}  // namespace trestle
