#include "comm/watch/process_exit.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "comm/membership/membership.h"
#include "control_mesh/inquiry.h"
#include "engine/run/progress.h"
#include "rendezvous/giving_up.h"

namespace trestle {

namespace {

constexpr int kAllGoodbyesMs = 2 * kGoodbyeMs;

class Leavers {
 public:
  void add(const std::shared_ptr<LivingCommunicator>& communicator) {
    const MutexLock lock(mutex_);
    all_[communicator.get()] = communicator;
  }
  void remove(const LivingCommunicator* communicator) {
    const MutexLock lock(mutex_);
    all_.erase(communicator);
  }
  std::vector<std::shared_ptr<LivingCommunicator>> all() {
    std::vector<std::shared_ptr<LivingCommunicator>> living;
    const MutexLock lock(mutex_);
    for (const auto& [key, communicator] : all_) {
      if (auto one = communicator.lock()) living.push_back(std::move(one));
    }
    return living;
  }
  bool none() { return all().empty() && makings.none(); }

  StopFlags makings;

 private:
  Mutex mutex_;
  std::map<const LivingCommunicator*, std::weak_ptr<LivingCommunicator>> all_ TRESTLE_GUARDED_BY(mutex_);
};

// Communicators that a forked child inherits belong to its parent.
constinit PerProcess<Leavers> leavers;

// First reports what was under way, for all communicators: that never waits.
void leave(const std::vector<std::shared_ptr<LivingCommunicator>>& communicators, int64_t deadline_ns) {
  for (const auto& communicator : communicators) communicator->report_exit(deadline_ns);
  for (const auto& communicator : communicators) communicator->exit(deadline_ns);
}

void leave_all(int64_t deadline_ns) {
  begin_exit();
  leave(leavers.get().all(), deadline_ns);
  leavers.get().makings.raise();
  // Other threads may be destroying communicators now. A communicator that was being created may have been finished
  // before its thread saw the flag.
  while (!leavers.get().none() && monotonic_clock().now_ns() < deadline_ns) {
    ::poll(nullptr, 0, 1);
    leave(leavers.get().all(), deadline_ns);
  }
}

// Runs after the rest of the program has ended. A thread of its own says the goodbyes: exit() may have been called
// inside the library (by a user's reduction function), where this thread holds locks.
__attribute__((destructor)) void leave_when_the_process_exits() {
  Progress::process_exits();
  if (leavers.current() == nullptr || leavers.get().none()) return;
  static std::atomic<bool> done{false};
  const int64_t now_ns = monotonic_clock().now_ns();
  auto started = Thread::start("exit", [now_ns] {
    leave_all(now_ns + kGoodbyeMs * kMs);
    done.store(true, std::memory_order_release);
  });
  if (!started.ok()) return;
  const int64_t give_up_ns = now_ns + kAllGoodbyesMs * kMs;
  while (!done.load(std::memory_order_acquire) && monotonic_clock().now_ns() < give_up_ns) ::poll(nullptr, 0, 1);
  Thread thread = std::move(started).value();
  if (done.load(std::memory_order_acquire)) {
    thread.join();
  } else {
    thread.detach();
  }
}

}  // namespace

void leave_at_exit(const std::shared_ptr<LivingCommunicator>& communicator) {
  leavers.get().add(communicator);
}

std::vector<std::shared_ptr<LivingCommunicator>> living_communicators() {
  return leavers.get().all();
}

std::shared_ptr<LivingCommunicator> living_communicator(const OtherCommRank& place) {
  const auto all = living_communicators();
  const auto found = std::find_if(all.begin(), all.end(), [&place](const auto& one) {
    return one->membership().job() == place.communicator && one->membership().rank() == place.rank;
  });
  return found == all.end() ? nullptr : *found;
}

StopAtExit::StopAtExit(std::atomic<bool>& stop) : registration_(leavers.get().makings, stop) {}

void forget_at_exit(const LivingCommunicator* communicator) {
  leavers.get().remove(communicator);
}

}  // namespace trestle
