// The end of communicators: finalize, destroy, abort.
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "comm/communicator/communicator.h"
#include "comm/device/driver_watch.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/mesh_sequence.h"
#include "comm/watch/statistics_text.h"

namespace trestle {

namespace {

constexpr int64_t kLetGoNs = 1'000'000'000;

}  // namespace

// One communicator's wait for the other ranks' finalization.
struct Communicator::Finalization {
  Communicator* communicator;
  const std::atomic<bool>* stop;
  MeshWait wait = {};
  bool ended = false;
  Status status = {};

  void begin() {
    status = communicator->check_open();
    if (status.ok() && communicator->life_.finalizing.exchange(true)) {
      status = Error{Code::kInvalidUsage,
                     "communicator " + communicator->membership_.name() + " is being finalized already"};
    }
    // Behind the flag: an exit that closes the communicator now has seen it, or is seen here.
    if (status.ok()) status = communicator->check_open();
    if (status.ok()) communicator->calls_.number_finalization();
    if (status.ok()) status = communicator->synchronize(stop);
    ended = !status.ok();
    if (ended) return;
    wait.key.kind = CallKind::kFinalize;
    wait.sequence = kFinalizeBarrier;
    wait.deadline_ns = deadline_of(communicator->membership_.settings());
    wait.timeout_ns = communicator->membership_.settings().config.timeout_ns;
    communicator->mesh_->mesh().start_barrier(kFinalizeBarrier);
  }

  void look() {
    if (ended) return;
    const Result<bool> done = communicator->mesh_->mesh().barrier_done(kFinalizeBarrier);
    if (done.ok() && done.value()) {
      // All ranks are finalized. The end of another rank is now no failure of this one.
      communicator->life_.finalized = true;
    } else if (communicator->engine_->failed()) {
      status = *communicator->failure();
    } else if (!done.ok()) {
      // Takes the mesh's failure here. The mesh reports it on another thread, perhaps later.
      communicator->watch_.remote_failure(done.error());
      status = *communicator->failure();
    } else if (stop != nullptr && *stop) {
      status =
          Error{Code::kAborted, "CommFinalize of communicator " + communicator->membership_.name() + " was cancelled"};
    } else {
      return communicator->watch_.look_at_wait(wait);  // asks around when it is late
    }
    ended = true;
  }
};

Status Communicator::finalize_together(const std::vector<std::shared_ptr<Communicator>>& communicators,
                                       const std::atomic<bool>* stop) {
  std::vector<Finalization> all;
  for (const auto& communicator : communicators) all.push_back({communicator.get(), stop});
  for (Finalization& one : all) one.begin();
  const std::shared_ptr<Engine> only = all.size() == 1 ? communicators[0]->engine_ : nullptr;
  Progress::process().wait(
      [&all] {
        for (Finalization& one : all) one.look();
        return std::all_of(all.begin(), all.end(), [](const Finalization& one) { return one.ended; });
      },
      [&only] { return only; });
  for (Finalization& one : all) TRY(std::move(one.status));
  return {};
}

Status Communicator::finalize(const std::atomic<bool>* stop) {
  return finalize_together({shared_from_this()}, stop);
}

void Communicator::leave(int linger_ms, int64_t give_up_ns, bool by_exit) {
  engine_->tell_failure();
  {
    const Progress::IdleDrive idle_too;
    engine_->close(engine_->failed() ? 0 : linger_ms, give_up_ns);
  }
  Progress::process().remove(engine_.get());
  Progress::process().remove(mesh_.get());
  if (driver_watch_ != nullptr) Progress::process().remove(driver_watch_.get());
  mesh_->leave(linger_ms, by_exit);
  forget_at_exit(this);
}

// A communicator that has half ended would be used when it is gone.
void Communicator::destroy(int linger_ms) {
  if (life_.closed.exchange(true)) return;
  run_or_end_process("while a communicator ends", [this, linger_ms] { end(linger_ms); });
}

void Communicator::end(int linger_ms) {
  captures_->close();
  Progress::process().wait([this] { return engine_->pending() == 0 && !splits_.has_exchanges(); },
                           [this] { return engine_; });
  if (log_enabled(LogLevel::kInfo, Subsystem::kInit)) {
    LOG(kInfo, kInit, "%s: %s", membership_.own_name().c_str(),
        to_text(engine_->statistics().read(), membership_.topology()).c_str());
    for (const std::string& rail : rail_texts(engine_->rail_reports()))
      LOG(kInfo, kInit, "%s: %s", membership_.own_name().c_str(), rail.c_str());
  }
  // Data of devices has other ways.
  if (calibration_ && settings().config.device < 0)
    forget_if_slower_than_data(*calibration_, engine_->statistics().read().dimensions,
                               static_cast<uint64_t>(settings().config.eager_bytes));
  leave(linger_ms, kNoDeadline, false);
  rendezvous_.let_go();
  captures_->clear();
  calls_.memory().clear();
  engine_->free_transports();
  // A thread that looks at all engines may still hold this one for a moment. Its descriptors are closed when that
  // thread lets go.
  const int64_t until = monotonic_clock().now_ns() + kLetGoNs;
  while (engine_.use_count() > 1 && monotonic_clock().now_ns() < until) ::sched_yield();
}

void Communicator::report_exit(int64_t deadline_ns) {
  if (engine_->failed()) return;  // the other ranks know of the failure
  const std::string what = watch_.under_way(deadline_ns);
  if (what.empty()) return;
  const Error error{Code::kRemoteError,
                    membership_.own_name() + " exited without CommDestroy while " + what + " was under way on it"};
  mesh_->mesh().flood_error(error, membership_.rank());
  engine_->fail({Code::kAborted, error.message});
}

void Communicator::exit(int64_t deadline_ns) {
  if (life_.closed.exchange(true)) return;
  report_exit(deadline_ns);  // calls that other threads have begun since the last report; from now on none begins
  const int64_t left_ms = (deadline_ns - monotonic_clock().now_ns()) / 1'000'000;
  leave(static_cast<int>(std::max<int64_t>(left_ms, 1)), deadline_ns, true);
}

void Communicator::abort() {
  run_or_end_process("while a communicator ends", [this] {
    engine_->fail({Code::kAborted, membership_.own_name() + ": the communicator was aborted"});
    mesh_->mesh().flood_abort();
  });
}

}  // namespace trestle
