#include "comm/communicator/communicator.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/descriptor_room.h"
#include "base/log.h"
#include "base/scope_exit.h"
#include "base/thread.h"
#include "comm/communicator/captured_calls.h"
#include "comm/communicator/comm_split.h"
#include "comm/device/driver_watch.h"
#include "comm/membership/descriptors.h"
#include "comm/setup/device_setup.h"
#include "comm/setup/together.h"
#include "comm/setup/version_line.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/stop_flags.h"
#include "sched/select/select.h"

namespace trestle {

namespace {

// Copying this takes a fraction of a millisecond: less than the segments that are under way take on a link of
// 10 Gbit/s.
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

// Takes the transports, the router and the express path out of the wiring.
std::shared_ptr<Engine> make_engine(const Membership& membership, Wiring& wiring, DevicePlace device,
                                    const std::shared_ptr<MeshPoller>& mesh, const std::shared_ptr<StopFlags>& stops,
                                    const std::shared_ptr<FailureListeners>& listeners) {
  const int32_t rank = membership.rank();
  EngineConfig config;
  config.rank = rank;
  config.ranks = membership.ranks();
  config.name = membership.own_name();
  config.peer_names = membership.names();
  config.clock = &monotonic_clock();
  for (int32_t r = 0; r < membership.ranks(); ++r)
    config.dimension_of.push_back(membership.topology().outermost_difference(rank, r));
  // Judged by all processor masks together: ranks that are each bound to a core share none.
  config.crowded = membership.ranks_per_processor() > 1;
  config.spin_us = membership.settings().config.spin_us;
  config.copy_bytes = kCopyBytes;
  config.calls_checked = membership.settings().config.check_calls;
  config.on_failure = [mesh, rank, stops, listeners](const Error& error) {
    stops->raise();
    listeners->tell(error);
    if (error.code == Code::kAborted) return;
    mesh->mesh().flood_error(error, rank);
  };
  config.work = std::move(wiring.work);
  config.device = std::move(device);
  config.on_overdue = [mesh](const Overdue& overdue) { return mesh->inquire(overdue); };
  return std::make_shared<Engine>(std::move(config), std::move(wiring.transports), std::move(wiring.router),
                                  std::move(wiring.express));
}

// Ends a communicator that no caller gets. The watch thread may hold it at that moment, but must not be its last owner,
// because the end of a communicator waits for that thread.
class Undelivered {
 public:
  Undelivered() = default;
  explicit Undelivered(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  ~Undelivered() {
    if (communicator_ != nullptr) communicator_->destroy(0);
  }
  Undelivered(const Undelivered&) = delete;
  Undelivered& operator=(const Undelivered&) = delete;
  Communicator* operator->() const { return communicator_.get(); }
  void hold(std::shared_ptr<Communicator> communicator) { communicator_ = std::move(communicator); }
  std::shared_ptr<Communicator> deliver() { return std::exchange(communicator_, nullptr); }

 private:
  std::shared_ptr<Communicator> communicator_;
};

HostKin root_kin(const Bootstrap& bootstrap) {
  return root_kin(HostMember{bootstrap.rank(), bootstrap.nranks(), to_hex(bootstrap.job()), bootstrap.secret()});
}

}  // namespace

// ---- creation

Communicator::Communicator(Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring wiring,
                           DevicePlace device, const HostKin& kin)
    : membership_(bootstrap, settings, wiring, kin),
      stops_(std::make_shared<StopFlags>()),
      listeners_(std::make_shared<FailureListeners>()),
      mesh_(std::make_shared<MeshPoller>(bootstrap.take_mesh(), rank(), membership_.names())),
      engine_(make_engine(membership_, wiring, std::move(device), mesh_, stops_, listeners_)),
      calls_(membership_, *engine_, mesh_->mesh(), wiring.memory, *own_stream_),
      notices_(mesh_->mesh(), rank()),
      watch_(parts()) {
  // Other names may have been in use while the communicator was made.
  mesh_->mesh().set_names(membership_.names());
}

// A rank that an exception keeps from going on tells the others, which would wait for it.
Result<std::shared_ptr<Communicator>> Communicator::assemble(Bootstrap& bootstrap, const CommunicatorSettings& settings,
                                                             int64_t deadline_ns, const std::atomic<bool>* stop,
                                                             const HostKin& kin) {
  ScopeExit thrown([&bootstrap] {
    run_or_end_process("while a communicator is made", [&bootstrap] {
      bootstrap.fail({Code::kSystemError, "rank " + std::to_string(bootstrap.rank()) + " is out of memory"});
    });
  });
  auto made = wire_and_start(bootstrap, settings, deadline_ns, stop, kin);
  thrown.release();
  return made;
}

Result<std::shared_ptr<Communicator>> Communicator::wire_and_start(Bootstrap& bootstrap,
                                                                   const CommunicatorSettings& settings,
                                                                   int64_t deadline_ns, const std::atomic<bool>* stop,
                                                                   const HostKin& kin) {
  const auto fail = [&bootstrap](Error error) {
    bootstrap.fail(error);
    return error;
  };
  // The driver may wait for calls of other communicators, here or in another process, which may need this rank.
  std::optional<Progress::IdleDrive> idle_too;
  if (settings.config.device >= 0) idle_too.emplace();
  auto device = open_device_of(settings.config.device);
  if (!device.ok()) return fail(std::move(device).error());
  auto wiring = wire(bootstrap, settings, kin, device.value(), deadline_ns);
  if (!wiring.ok()) return fail(std::move(wiring).error());
  const Config& config = settings.config;
  auto valid = validate({config.algorithm, config.schedule, static_cast<uint32_t>(config.chunks),
                         static_cast<uint32_t>(config.phases_in_flight), config.intra},
                        wiring.value().topology);
  if (!valid.ok()) return fail(std::move(valid).error());
  // No rank may send to a rank that has refused.
  auto together = bootstrap.barrier(deadline_ns);
  if (!together.ok()) return fail(std::move(together).error());
  const CalibrationPlace calibration = wiring.value().calibration;
  const bool measure = wiring.value().measure;
  std::optional<UsedCalibration> used = std::move(wiring.value().used);
  Undelivered communicator(std::shared_ptr<Communicator>(
      new Communicator(bootstrap, settings, std::move(wiring).value(), std::move(device).value(), kin)));
  ScopeExit thrown([&communicator] { communicator->engine_->fail_without_memory(); });
  communicator->calibration_ = std::move(used);
  Status started = communicator->start();
  if (started.ok() && measure) started = communicator->calibrate(calibration, stop);
  if (started.ok()) communicator->membership_.log_topology(communicator->engine_->express() != nullptr);
  thrown.release();
  TRY(std::move(started));
  return communicator.deliver();
}

Status Communicator::start() {
  mesh_->start(watch_);
  Status driven = engine_->opened();
  if (driven.ok()) driven = Progress::process().add(engine_);
  if (driven.ok()) driven = Progress::process().add(std::static_pointer_cast<Pollable>(mesh_));
  if (driven.ok() && engine_->driver_calls() != nullptr) {
    driver_watch_ = std::make_shared<DriverWatch>(engine_, engine_->driver_calls(), membership_.own_name(),
                                                  membership_.settings().config.timeout_ns);
    driven = Progress::process().add(driver_watch_);
  }
  if (driven.ok()) {
    leave_at_exit(shared_from_this());
  } else {
    engine_->fail(driven.error());  // tells the other ranks
  }
  return driven;
}

Result<std::shared_ptr<Communicator>> Communicator::create(const UniqueIdBytes& id, int32_t nranks, int32_t rank,
                                                           const CommunicatorSettings& settings,
                                                           std::atomic<bool>& stop) {
  set_log_rank(rank);
  const auto join = [&]() -> Result<std::shared_ptr<Communicator>> {
    const StopAtExit registered(stop);
    if (rank == 0) log_version(settings.config);
    const int64_t deadline = deadline_of(settings);
    BootstrapConfig config = bootstrap_config(settings.config, nranks, rank, id);
    config.rails = settings.control_rails;
    config.deadline_ns = deadline;
    config.abort = &stop;
    const Status room = make_descriptor_room(
        own_rank_name(rank) + ": a communicator of " + std::to_string(nranks) + " ranks", descriptors_of_rank(nranks));
    auto joined = Bootstrap::join(config);
    if (!room.ok()) {
      if (joined.ok()) joined.value()->fail(room.error());  // the others would wait for this rank
      return room.error();
    }
    auto bootstrap = TRY(std::move(joined));
    auto made = TRY(assemble(*bootstrap, settings, bootstrap->deadline_ns(), &stop, root_kin(*bootstrap)));
    made->rendezvous_.take(bootstrap->take_hold(), made->listeners_, made->engine_);
    return made;
  };
  auto made = join();
  if (!made.ok() && made.error().code != Code::kAborted)
    LOG(kWarn, kInit, "rank %d: no communicator of %d ranks was made: %s", rank, nranks, made.error().message.c_str());
  return made;
}

Result<std::vector<std::shared_ptr<Communicator>>> Communicator::create_all(
    const std::vector<CommunicatorSettings>& settings) {
  const Config& common = settings.front().config;
  log_version(common);
  const auto nranks = static_cast<int32_t>(settings.size());
  const int64_t deadline = deadline_of(settings.front());
  BootstrapConfig config = bootstrap_config(common, nranks, 0, UniqueIdBytes{});
  config.deadline_ns = deadline;
  TRY(make_descriptor_room("CommInitAll: " + std::to_string(nranks) + " ranks",
                           settings.size() * descriptors_of_rank(nranks)));
  auto bootstraps = TRY(Bootstrap::join_in_process(config));
  std::vector<Undelivered> made(nranks);
  std::vector<std::shared_ptr<Communicator>> delivered(nranks);
  TRY(run_together(made.size(), [&](size_t r) -> Status {
    made[r].hold(TRY(assemble(*bootstraps[r], settings[r], deadline, nullptr, root_kin(*bootstraps[r]))));
    return {};
  }));
  for (size_t r = 0; r < made.size(); ++r) delivered[r] = made[r].deliver();
  return delivered;
}

Communicator::~Communicator() {
  destroy(0);
  captures_->clear();  // an exit of the process has not done it
}

Status Communicator::submit_on_outer(const Call& call, const std::shared_ptr<Stream>& stream) {
  if (TRY(stream->captured_lane()) == nullptr) return calls_.submit(call, stream);
  TRY(stream->check_open());
  const CaptureRequest request{this, &call, stream.get()};
  return CapturedCalls::capture({&request, 1});
}

Result<std::shared_ptr<Communicator>> Communicator::split(const SplitCall& call, std::atomic<bool>& stop) {
  const StopFlags::Registration registered(*stops_, stop);
  const CommSplit::Assemble assemble_child = [&](Bootstrap& bootstrap, const CommunicatorSettings& settings,
                                                 const HostKin& kin, int64_t deadline_ns) {
    return assemble(bootstrap, settings, deadline_ns, &stop, kin);
  };
  // Before the parent may end.
  const std::shared_ptr<RendezvousHold> hold = rendezvous_.share();
  auto child = CommSplit(parts(), watch_, call, stop).run(assemble_child);
  if (child.ok() && child.value() != nullptr)
    child.value()->rendezvous_.take(hold, child.value()->listeners_, child.value()->engine_);
  return child;
}

// A failure that came before the registration has not called the listener, so it is called here. A later one calls it.
std::unique_ptr<FailureListeners::Registration> Communicator::on_failure(const FailureListener& listener) {
  auto registration = std::make_unique<FailureListeners::Registration>(listeners_, listener);
  if (const Failure error = failure()) listener(*error);
  return registration;
}

// ---- what may be called

Error Communicator::refusal() const {
  if (engine_->failed()) return *failure();
  if (life_.closed) return {Code::kInvalidUsage, "communicator " + membership_.name() + " was destroyed"};
  return {Code::kInvalidUsage, "communicator " + membership_.name() + " was finalized: only Destroy may follow"};
}

Result<uint64_t> Communicator::register_memory(const void* begin, size_t bytes) {
  TRY(check_open());
  return calls_.memory().add(begin, bytes);
}

// ---- waiting

Status Communicator::synchronize(const std::atomic<bool>* stop) {
  const auto stopped = [stop] { return stop != nullptr && *stop; };
  Progress::process().wait([&] { return engine_->pending() == 0 || stopped(); }, [this] { return engine_; });
  if (engine_->failed()) return *failure();
  if (stopped()) return Error{Code::kAborted, "the wait for communicator " + membership_.name() + " was cancelled"};
  return {};
}

}  // namespace trestle
