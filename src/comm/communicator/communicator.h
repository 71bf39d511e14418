// Communicator: one rank's membership: wiring, plans, engine, control mesh, and the cause of its failure.
//
// Owned by its C handle (shared with the control mesh's poller while it lives). Any thread. submit_mutex_ serialises
// the calls in call order. No thread waits while it holds the mutex, except for the short spin of the express path.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/calls/call_path.h"
#include "comm/membership/membership.h"
#include "comm/setup/settings.h"
#include "comm/setup/wiring.h"
#include "engine/run/engine.h"
#include "engine/run/progress.h"
#include "rendezvous/bootstrap.h"

namespace trestle {

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
  uint64_t split_number() { return calls_.number_split(); }
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
  CallPath& calls() { return calls_; }
  const CallPath& calls() const { return calls_; }

  // The sticky failure, if there is one.
  std::optional<Error> failure() const { return engine_->failure(); }

  // Success if calls are taken: not after a failure, Finalize or Destroy.
  Status check_open() const {
    if (engine_->failed() || closed_ || finalized_) [[unlikely]]
      return refusal();
    return {};
  }
  // As CallPath::submit(), if calls are taken.
  Status submit(const Call& call, const std::shared_ptr<Stream>& stream) {
    TRY(check_open());
    return calls_.submit(call, stream);
  }

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
  Status deregister_memory(uint64_t id) { return calls_.deregister_memory(id); }
  uint64_t registered_bytes() const { return calls_.memory().bytes(); }

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
  Error refusal() const;  // why it takes no calls

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

  void remote_failure(const Error& error);
  void peer_left(int32_t rank, bool by_exit);
  // Says goodbye to all and ends all connections. Transports still in use after `give_up_ns` end only with the process.
  void leave(int linger_ms, int64_t give_up_ns, bool by_exit);
  // "CommSplit", "operation 17 (allreduce ...)"; "": nothing is under way.
  std::string under_way(int64_t deadline_ns);
  Answer answer(const Question& question);
  // A thread that waits for the control mesh sleeps at the engine, and no peer rings for it there.
  void wake_gatherers() {
    if ((splitting_ != 0 || finalizing_) && engine_->sleepers() != 0) engine_->wake();
  }

  Membership membership_;
  const std::shared_ptr<StopFlags> stops_;  // of splits under way: raised by a failure
  const std::shared_ptr<MeshPoller> mesh_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Stream> own_stream_ = std::make_shared<Stream>();
  CallPath calls_;
  std::atomic<int> splitting_{0};  // exchanges of splits that use the mesh now
  Mutex splits_mutex_;
  std::map<uint64_t, std::shared_ptr<Making>> splits_ TRESTLE_GUARDED_BY(splits_mutex_);  // by their numbers
  std::atomic<bool> finalizing_{false};
  std::atomic<bool> finalized_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace trestle
