// Communicator: one rank's membership: wiring, plans, engine, control mesh, and the cause of its failure.
//
// Owned by its C handle (shared with the control mesh's poller while it lives). Any thread. submit_mutex_ serialises
// the calls in call order. No thread waits while it holds the mutex, except for the short spin of the express path.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/calls/call_check.h"
#include "comm/calls/custom_ops.h"
#include "comm/calls/prepared_cache.h"
#include "comm/calls/schedule_cache.h"
#include "comm/membership/membership.h"
#include "comm/setup/settings.h"
#include "comm/setup/wiring.h"
#include "engine/prepare/prepared.h"
#include "engine/run/engine.h"
#include "engine/run/progress.h"
#include "rendezvous/bootstrap.h"
#include "sched/select/select.h"

namespace trestle {

// One call of the API, checked.
struct Call {
  PrepareRequest request;  // request.peer >= 0: point to point
  bool sending = false;
  bool measuring = false;  // made by the library to measure, not by the user
  const void* send = nullptr;
  void* recv = nullptr;
  int64_t timeout_ns = -1;  // 0: none; -1: the communicator's
};

// One rank's call of CommSplit.
struct SplitCall {
  uint64_t number = 0;  // from split_number()
  int32_t color = 0;    // kNoColor: not part of any new communicator
  int32_t key = 0;
  bool has_place = true;  // false: newcomm is NULL, and all ranks are told
  // Settings of the new communicator. An error in them is told to all ranks, so that none waits.
  Result<CommunicatorSettings> settings;
};
inline constexpr int32_t kNoColor = -1;

class MeshPoller;
class StopFlags;
struct Question;
struct Answer;
struct Elsewhere;
struct JoinReport;

// How long an orderly end waits until its goodbye has left this machine.
inline constexpr int kGoodbyeMs = 1000;

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // Joins and waits for all ranks. `stop`: ends it soon with kAborted when another thread, or the exit of the process,
  // sets it.
  static Result<std::shared_ptr<Communicator>> create(const UniqueIdBytes& id, int32_t nranks, int32_t rank,
                                                      const CommunicatorSettings& settings, std::atomic<bool>& stop);
  // All ranks of a new communicator in this process.
  static Result<std::vector<std::shared_ptr<Communicator>>> create_all(int32_t nranks,
                                                                       const CommunicatorSettings& settings);
  ~Communicator();
  // The communicator of that rank, if it lives in this process.
  static std::shared_ptr<Communicator> find(const Elsewhere& place);

  // Splits are counted in the order of the calls, which is the same on all ranks.
  uint64_t split_number();
  // Collective: joins the ranks of the call's colour, in the order of (key, rank). nullptr for kNoColor. Ends early
  // with this communicator's failure. Errors: a rank's colour or settings are wrong (all ranks are told, this
  // communicator goes on); the exchange over this communicator failed or was late (sticky); the new one failed. `stop`:
  // set by another thread or by this communicator's failure.
  Result<std::shared_ptr<Communicator>> split(const SplitCall& call, std::atomic<bool>& stop);

  const Membership& membership() const { return membership_; }
  const CommunicatorSettings& settings() const { return membership_.settings(); }
  int32_t rank() const { return membership_.rank(); }
  int32_t ranks() const { return membership_.ranks(); }
  const Topology& topology() const { return membership_.topology(); }
  const std::shared_ptr<Stream>& own_stream() const { return own_stream_; }
  Engine& engine() { return *engine_; }
  CustomOps& custom_ops() { return custom_ops_; }
  const CustomOps& custom_ops() const { return custom_ops_; }
  // An operator was removed: drops what was prepared for it, except pinned entries.
  void forget_op(const CustomOp* op) { cache_.drop(op); }

  // The sticky failure, if there is one.
  std::optional<Error> failure() const { return engine_->failure(); }

  // Success if calls are taken: not after a failure, Finalize or Destroy.
  Status check_open() const;
  // Enqueues one call, alone in its item of the stream.
  Status submit(const Call& call, const std::shared_ptr<Stream>& stream);
  // Two steps for groups: prepare_call() may fail, commit() cannot.
  Result<std::shared_ptr<const Prepared>> prepare_call(const Call& call);
  // As prepare_call(), for a call that will be made again: its plans stay until release_call, whatever else is
  // prepared.
  Status hold_call(const Call& call);
  void release_call(const Call& call) { cache_.unpin({call.request, call.sending}); }
  // The number that a call must take before it is committed, because a split that takes a number comes after it. Only
  // where calls are checked.
  std::optional<uint64_t> number_ahead(const Call& call);
  // `stream`: the one that it will be put on; `ahead`: from number_ahead().
  Operation* commit(const Call& call, const std::shared_ptr<const Prepared>& prepared, Stream& stream,
                    std::optional<uint64_t> ahead);
  void committed();  // to be called after the operations were put on streams
  // Replaces all that for a call without any data. It does nothing, except that it is compared where calls are checked.
  void skip(const Call& call, const Stream& stream, std::optional<uint64_t> ahead = {});

  // With `stop`: ends early, with kAborted, when it is set; that fails nothing.
  Status synchronize() { return synchronize(nullptr); }
  Status synchronize(const std::atomic<bool>* stop);
  Status finalize(const std::atomic<bool>* stop = nullptr);
  // For several ranks of one thread: none waits for the finalization of another first. Returns the first error, in
  // their order.
  static Status finalize_together(const std::vector<std::shared_ptr<Communicator>>& communicators,
                                  const std::atomic<bool>* stop = nullptr);
  // Waits for this rank's work, never for other ranks' destroy.
  void destroy(int linger_ms);
  void abort();
  // The process exits, and nothing has destroyed this communicator (process_exit.h). tell_exit() reports what was under
  // way to the other ranks, if anything was, and ends it. exit() says goodbye, at most until `deadline_ns` of the
  // monotonic clock. A Destroy that follows, or runs on another thread, does nothing more.
  void tell_exit(int64_t deadline_ns);
  void exit(int64_t deadline_ns);

  // User memory that peers may map from now on, until deregister_memory() or destroy(). Returns its id.
  Result<uint64_t> register_memory(const void* begin, size_t bytes);
  Status deregister_memory(uint64_t id);
  uint64_t registered_bytes() const { return memory_->bytes(); }

  // `count` as the C call counts; a v-variant as if all blocks had `count` elements.
  Result<double> predict_us(Collective collective, uint64_t count, DataType type, const SharedOptions& options = {});
  // Shard of `rank` of a vector of `count` elements.
  ElementRange shard(int32_t rank, uint64_t count) const { return nth_range(count, ranks(), rank); }

 private:
  friend class MeshPoller;
  struct Finalization;
  struct Part;
  Communicator(Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring wiring, const RootIdentity& root);
  static Result<std::shared_ptr<Communicator>> assemble(Bootstrap& bootstrap, const CommunicatorSettings& settings,
                                                        int64_t deadline_ns, const std::atomic<bool>* stop,
                                                        const RootIdentity& root);
  // Measures the links and uses the results. All ranks, before the first call.
  Status calibrate(const CalibrationPlace& place, const std::atomic<bool>* stop);
  static uint64_t group_segment_bytes(const void* self, const std::vector<int32_t>& group);

  // A call that waits for all ranks over the control mesh.
  struct MeshWait {
    OperationKey key;
    uint64_t sequence = 0;
    int64_t deadline_ns = 0;
    int64_t timeout_ns = 0;
    bool asked = false;  // past the deadline: an inquiry was started
  };
  // A split under way, for ranks that ask about it.
  struct Making {
    std::vector<int32_t> members;      // of the new communicator, by their ranks there; empty: not known yet
    std::atomic<int32_t> awaited{-1};  // the member that this rank waits for; -1: none
    std::optional<Error> story;        // why a member gave up
  };
  struct SplitWait {
    OperationKey key;
    int64_t deadline_ns;
    int64_t timeout_ns;
    const std::atomic<bool>& stop;
  };
  // How the ranks of a split meet to make the new communicator.
  struct Door;
  Result<std::vector<std::string>> gather(uint64_t half, std::string mine, const SplitWait& wait);
  Result<std::vector<Part>> gather_parts(const SplitCall& call, const SplitWait& wait);
  Result<std::shared_ptr<Communicator>> join_part(const SplitCall& call, const std::vector<Part>& parts, Making& making,
                                                  const SplitWait& wait);
  Result<std::shared_ptr<Communicator>> make_part(const SplitCall& call, Door& door, const SplitWait& wait);
  Error blame_for_making(int32_t awaited, const Error& own, const SplitWait& wait);
  Error failure_of_making(const Error& own, const SplitWait& wait);
  void tell_end_of_making(const std::vector<int32_t>& members, uint64_t number, const JoinReport& report);
  void hear_end_of_making(const std::string& letter);

  // Past the deadline: starts the inquiry, once. The communicator fails with its result.
  void look_at_deadline(MeshWait& wait);
  void end_inquiry(const OperationKey& key, Error error);
  std::string late_text(int64_t timeout_ns, const std::string& call) const;
  Answer answer_for_operation(const Question& question);
  Answer answer_for_call(const OperationKey& key);
  // Fills in what an operation waits for on its stream.
  void tell_head(Stream& stream, const OperationKey& key, Answer& answer);
  // Fills in what a thread of this rank waits for in another communicator, if that may be why a call was not made.
  void tell_wait_elsewhere(Answer& answer);
  // Fills in why another communicator of this rank has failed, if one has lately.
  void tell_failure_elsewhere(Answer& answer);
  bool tell_of_other(const Communicator& other, const Standing& standing, Answer& answer) const;
  void tell_where(const Standing& standing, Answer& answer);
  bool waits_in(const OperationKey& key);
  std::optional<OperationKey> open_call();
  void tell_of(const OperationKey& key, Answer& answer);

  bool is_express(const Call& call) const;
  ExpressCall express_call(const Call& call, uint64_t number);
  bool run_express(ExpressCall& express);
  void enqueue(Operation* operation, Stream& stream);
  Operation* bind(const Call& call, const std::shared_ptr<const Prepared>& prepared, bool over_board,
                  std::optional<uint64_t> ahead = {}) TRESTLE_REQUIRES(submit_mutex_);
  Status submit_express(const Call& call, const std::shared_ptr<Stream>& stream) TRESTLE_REQUIRES(submit_mutex_);
  Result<ScheduleCache::Entry> schedule_for(const PrepareRequest& request);
  Result<ScheduleCache::Entry> schedule_for(const SelectionRequest& what, const SharedOptions& options);
  Result<std::shared_ptr<const Prepared>> build(const Call& call);
  void check_memory(const Call& call);
  uint64_t next_number(const Call& call) TRESTLE_REQUIRES(submit_mutex_);
  // Log lines. log_call: a call that is about to be submitted. `numbered`: log the number that next_number() will give
  // it, unless it has one already (`ahead`); false: log no number.
  void log_call(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead = {})
      TRESTLE_REQUIRES(submit_mutex_) {
    if (log_enabled(LogLevel::kInfo, Subsystem::kCall)) [[unlikely]]
      say_call(call, stream, numbered, ahead);
  }
  void say_call(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead)
      TRESTLE_REQUIRES(submit_mutex_);
  void say_schedule(const PrepareRequest& request, const Schedule& schedule) const;
  void say_first_message(const Call& call) TRESTLE_REQUIRES(submit_mutex_);
  void remote_failure(const Error& error);
  void peer_left(int32_t rank, bool by_exit);
  // Says goodbye to all and ends all connections. Transports still in use after `give_up_ns` end only with the process.
  void leave(int linger_ms, int64_t give_up_ns, bool by_exit);
  // "CommSplit", "operation 17 (allreduce ...)"; "": nothing is under way.
  std::string under_way(int64_t deadline_ns);
  Answer answer(const Question& question);
  // TRESTLE_CHECK: tells the next rank of a call of this one; hear_call() takes another rank's.
  void tell_call(const OperationKey& operation, const CallSummary& summary);
  // The same for a split or the finalization. They are not operations, but take a number where calls are checked.
  void tell_place(const char* function) TRESTLE_REQUIRES(submit_mutex_);
  void tell_finalize();
  // A thread that waits for the control mesh sleeps at the engine, and no peer rings for it there.
  void wake_gatherers() {
    if ((splitting_ != 0 || finalizing_) && engine_->sleepers() != 0) engine_->wake();
  }
  void hear_call(int32_t from, const std::string& letter);

  Membership membership_;
  const std::shared_ptr<StopFlags> stops_;  // of splits under way: raised by a failure
  const std::shared_ptr<MemRegistrations> memory_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<MeshPoller> mesh_;
  std::shared_ptr<Stream> own_stream_ = std::make_shared<Stream>();

  Mutex submit_mutex_;
  uint64_t next_number_ TRESTLE_GUARDED_BY(submit_mutex_) = 0;
  std::atomic<int> splitting_{0};  // exchanges of splits that use the mesh now
  Mutex splits_mutex_;
  std::map<uint64_t, std::shared_ptr<Making>> splits_ TRESTLE_GUARDED_BY(splits_mutex_);  // by their numbers
  uint64_t next_split_ TRESTLE_GUARDED_BY(submit_mutex_) = 0;
  std::vector<uint64_t> sent_ TRESTLE_GUARDED_BY(submit_mutex_);  // point-to-point messages per peer
  std::vector<uint64_t> received_ TRESTLE_GUARDED_BY(submit_mutex_);
  std::set<std::pair<int32_t, bool>> told_pairs_ TRESTLE_GUARDED_BY(submit_mutex_);  // logged pairs: peer, sending
  std::unique_ptr<CallCheck> call_check_;                                            // or nullptr
  CustomOps custom_ops_;
  PlanCache plans_;
  ScheduleCache schedules_;
  PreparedCache cache_{[this](const Prepared* prepared) { engine_->forget(prepared); }};
  std::atomic<bool> finalizing_{false};
  std::atomic<bool> finalized_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace trestle
