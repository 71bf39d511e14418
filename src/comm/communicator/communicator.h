// Communicator: one rank of a communicator: how it is made, split and ended. It owns the parts that do the work:
// Membership (the ranks), CallPath (their calls), CallWatch (reports and questions of other ranks), SplitsInProgress,
// the engine, and the control mesh.
//
// Shared by its C handle and the calls under way. Any thread. The first failure is sticky: later calls return it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/calls/call_path.h"
#include "comm/communicator/capture_book.h"
#include "comm/membership/membership.h"
#include "comm/setup/settings.h"
#include "comm/setup/wiring.h"
#include "comm/split/split_call.h"
#include "comm/split/splits_in_progress.h"
#include "comm/watch/call_watch.h"
#include "comm/watch/communicator_parts.h"
#include "comm/watch/failure_listeners.h"
#include "comm/watch/held_rendezvous.h"
#include "comm/watch/life_cycle.h"
#include "comm/watch/notices.h"
#include "comm/watch/process_exit.h"
#include "engine/run/engine.h"
#include "engine/run/progress.h"
#include "engine/work/device_place.h"
#include "rendezvous/bootstrap.h"

namespace trestle {

class DriverWatch;
class MeshPoller;
class StopFlags;

class Communicator final : public LivingCommunicator, public std::enable_shared_from_this<Communicator> {
 public:
  // Joins and waits for all ranks. `stop`: ends it soon with kAborted when another thread, or the exit of the process,
  // sets it.
  static Result<std::shared_ptr<Communicator>> create(const UniqueIdBytes& id, int32_t nranks, int32_t rank,
                                                      const CommunicatorSettings& settings, std::atomic<bool>& stop);
  // All ranks of a new communicator in this process; the settings of each, which differ in the device only.
  static Result<std::vector<std::shared_ptr<Communicator>>> create_all(
      const std::vector<CommunicatorSettings>& settings);
  static Result<std::vector<std::shared_ptr<Communicator>>> create_all(int32_t nranks,
                                                                       const CommunicatorSettings& settings) {
    return create_all(std::vector<CommunicatorSettings>(static_cast<size_t>(nranks), settings));
  }
  ~Communicator() override;

  // The number of the next split. Splits are counted in the order of the calls, which is the same on all ranks.
  uint64_t split_number() { return calls_.number_split(); }
  // Collective: joins the ranks of the call's colour, in the order of (key, rank). nullptr for kNoColor. Ends early
  // with this communicator's failure. Errors: a rank's colour or settings are wrong (all ranks are told, this
  // communicator goes on); the exchange over this communicator failed or was late (sticky); the new one failed. `stop`:
  // set by another thread or by this communicator's failure.
  Result<std::shared_ptr<Communicator>> split(const SplitCall& call, std::atomic<bool>& stop);

  const Membership& membership() const override { return membership_; }
  const CommunicatorSettings& settings() const { return membership_.settings(); }
  int32_t rank() const { return membership_.rank(); }
  int32_t ranks() const { return membership_.ranks(); }
  const Topology& topology() const { return membership_.topology(); }
  const std::shared_ptr<Stream>& own_stream() const { return own_stream_; }
  Engine& engine() override { return *engine_; }
  CallPath& calls() { return calls_; }
  const std::shared_ptr<CaptureBook>& captures() const { return captures_; }
  const CallPath& calls() const { return calls_; }
  CallWatch& watch() override { return watch_; }
  Notices& notices() { return notices_; }

  // The sticky failure, if there is one.
  Failure failure() const { return engine_->failure(); }
  // Calls the listener when this fails, and now if it has failed already, for as long as the result lives.
  std::unique_ptr<FailureListeners::Registration> on_failure(const FailureListener& listener);
  // The sentence of that rank's orderly end, if it has left.
  std::optional<std::string> leaver(int32_t rank) { return engine_->leaver(rank); }

  // Success if calls are taken: not after a failure, Finalize or Destroy.
  Status check_open() const {
    if (engine_->failed() || life_.closed || life_.finalized) [[unlikely]]
      return refusal();
    return {};
  }
  // As CallPath::submit(), if calls are taken.
  Status submit(const Call& call, const std::shared_ptr<Stream>& stream) {
    TRY(check_open());
    if (stream->has_outer()) [[unlikely]]
      return submit_on_outer(call, stream);
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
  void report_exit(int64_t deadline_ns) override;
  void exit(int64_t deadline_ns) override;

  // User memory that peers may map from now on, until deregister_memory() or destroy(). Returns its id.
  Result<uint64_t> register_memory(const void* begin, size_t bytes);
  Status deregister_memory(uint64_t id) { return calls_.deregister_memory(id); }
  uint64_t registered_bytes() const { return calls_.memory().bytes(); }

  // Shard of `rank` of a vector of `count` elements.
  ElementRange shard(int32_t rank, uint64_t count) const { return nth_range(count, ranks(), rank); }

 private:
  struct Finalization;
  // device: nullptr if it has none.
  Communicator(Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring wiring, DevicePlace device,
               const HostKin& kin);
  static Result<std::shared_ptr<Communicator>> assemble(Bootstrap& bootstrap, const CommunicatorSettings& settings,
                                                        int64_t deadline_ns, const std::atomic<bool>* stop,
                                                        const HostKin& kin);
  static Result<std::shared_ptr<Communicator>> wire_and_start(Bootstrap& bootstrap,
                                                              const CommunicatorSettings& settings, int64_t deadline_ns,
                                                              const std::atomic<bool>* stop, const HostKin& kin);
  // From now on threads of the process drive it, and their exit says goodbye for it.
  Status start();
  // Measures the links and uses the results. All ranks, before the first call. An error fails the communicator.
  Status calibrate(const CalibrationPlace& place, const std::atomic<bool>* stop);
  Error refusal() const;  // why it takes no calls
  // Captures it instead if the outer stream is being captured.
  Status submit_on_outer(const Call& call, const std::shared_ptr<Stream>& stream);

  // Says goodbye to all and ends all connections. Transports still in use after `give_up_ns` end only with the process.
  void end(int linger_ms);
  void leave(int linger_ms, int64_t give_up_ns, bool by_exit);
  CommunicatorParts parts() { return {membership_, *engine_, *mesh_, calls_, splits_, notices_, life_}; }

  Membership membership_;
  const std::shared_ptr<StopFlags> stops_;  // of splits under way: raised by a failure
  const std::shared_ptr<FailureListeners> listeners_;
  const std::shared_ptr<MeshPoller> mesh_;
  std::shared_ptr<DriverWatch> driver_watch_;  // nullptr: there is no device
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Stream> own_stream_ = std::make_shared<Stream>();
  CallPath calls_;
  const std::shared_ptr<CaptureBook> captures_ = std::make_shared<CaptureBook>(*this);
  LifeCycle life_;
  SplitsInProgress splits_;
  Notices notices_;
  CallWatch watch_;
  std::optional<UsedCalibration> calibration_;  // at rank 0, if link speeds come from one; set at the creation
  HeldRendezvous rendezvous_;                   // where the ranks met at a named place
};

}  // namespace trestle
