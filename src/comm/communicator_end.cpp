// The end of communicators: finalize, destroy, abort.
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "comm/mesh_poller.h"
#include "comm/statistics_text.h"

namespace trestle {

namespace {

constexpr uint64_t kFinalizeBarrier = 0;

}  // namespace

// One communicator's wait for the other ranks' finalization.
struct Communicator::Finalization {
  Communicator* communicator;
  const std::atomic<bool>* stop;
  int64_t deadline_ns = kNoDeadline;
  bool ended = false;
  Status status = {};

  void begin() {
    status = communicator->check_open();
    if (status.ok() && communicator->finalizing_.exchange(true)) {
      status = Error{Code::kInvalidUsage, "communicator " + communicator->name_ + " is being finalized already"};
    }
    if (status.ok()) communicator->tell_finalize();
    if (status.ok()) status = communicator->synchronize(stop);
    ended = !status.ok();
    if (ended) return;
    deadline_ns = deadline_of(communicator->settings_);
    communicator->mesh_->mesh().start_barrier(kFinalizeBarrier);
  }

  void look() {
    if (ended) return;
    const Result<bool> done = communicator->mesh_->mesh().barrier_done(kFinalizeBarrier);
    if (communicator->engine_->failed()) {
      status = *communicator->failure();
    } else if (!done.ok()) {
      status = done.error();
    } else if (done.value()) {
      communicator->finalized_ = true;
    } else if (stop != nullptr && *stop) {
      status = Error{Code::kAborted, "CommFinalize of communicator " + communicator->name_ + " was ended"};
    } else if (monotonic_clock().now_ns() > deadline_ns) {
      status = give_up();
    } else {
      return;
    }
    ended = true;
  }

  Error give_up() const {
    std::string missing;
    for (const int32_t r : communicator->mesh_->mesh().missing(kFinalizeBarrier, true)) {
      missing += (missing.empty() ? "" : ", ") + communicator->names_[r];
    }
    Error error{Code::kTimeout,
                communicator->names_[communicator->rank_] + ": CommFinalize was not called in time by " + missing};
    communicator->engine_->fail(error);
    return error;
  }
};

void Communicator::tell_finalize() {
  const MutexLock lock(submit_mutex_);
  tell_place("CommFinalize");
}

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

void Communicator::destroy(int linger_ms) {
  if (closed_.exchange(true)) return;
  Progress::process().wait([this] { return engine_->pending() == 0 && splitting_ == 0; }, [this] { return engine_; });
  if (log_enabled(LogLevel::kInfo, Subsystem::kInit)) {
    LOG(kInfo, kInit, "%s: %s", names_[rank_].c_str(), to_text(engine_->statistics().read(), topology_).c_str());
  }
  {
    const Progress::Company company;
    engine_->close(engine_->failed() ? 0 : linger_ms);
  }
  memory_->clear();
  Progress::process().remove(engine_.get());
  Progress::process().remove(mesh_.get());
  mesh_->leave(linger_ms);
}

void Communicator::abort() {
  engine_->fail({Code::kAborted, names_[rank_] + ": the communicator was aborted"});
  mesh_->mesh().flood_abort();
}

}  // namespace trestle
