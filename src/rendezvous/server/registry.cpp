// The rendezvous servers of this process and their threads.
#include <atomic>
#include <cstdlib>
#include <list>
#include <memory>
#include <utility>

#include "base/cpu/heavy_fence.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "rendezvous/server/server_impl.h"

namespace trestle {
namespace {

class Registry {
 public:
  void end() {
    std::list<Entry> entries;
    {
      const MutexLock lock(mutex_);
      entries.swap(entries_);
    }
    end(entries);
  }

  void end_failed() {
    std::list<Entry> failed;
    {
      const MutexLock lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto at = entry++;
        if (at->server->failed()) failed.splice(failed.end(), entries_, at);
      }
    }
    end(failed);
  }

  void give_up(const JobId& job, int32_t rank, const Error& error) {
    const MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.server->job() == job) entry.server->give_up(rank, error);
    }
  }

  std::optional<RunningRendezvous> hold(const Credentials& credentials) {
    const MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (!entry.server->is_of(credentials)) continue;
      if (RendezvousHeld held = entry.server->hold()) return RunningRendezvous{std::move(held), entry.server->port()};
    }
    return std::nullopt;
  }

  Result<RendezvousHeld> add(std::unique_ptr<RendezvousServer> server) {
    const MutexLock lock(mutex_);
    reap();
    RendezvousHeld held = server->hold();
    entries_.emplace_back(std::move(server));
    Entry& entry = entries_.back();
    auto thread = Thread::start("root server", [&entry] {
      entry.server->run();
      entry.done.store(true, std::memory_order_release);
    });
    if (!thread.ok()) {
      entries_.pop_back();
      return std::move(thread).error();
    }
    entry.thread = std::move(thread).value();
    return held;
  }

  size_t running() {
    const MutexLock lock(mutex_);
    reap();
    return entries_.size();
  }

 private:
  struct Entry {
    explicit Entry(std::unique_ptr<RendezvousServer> made) : server(std::move(made)) {}
    std::unique_ptr<RendezvousServer> server;
    Thread thread;
    std::atomic<bool> done{false};
  };

  static void end(std::list<Entry>& entries) {
    for (Entry& entry : entries) entry.server->stop();  // all servers send their last answers at the same time
    for (Entry& entry : entries) entry.thread.join();
  }

  void reap() TRESTLE_REQUIRES(mutex_) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!entry->done.load(std::memory_order_acquire)) {
        ++entry;
        continue;
      }
      entry->thread.join();
      entry = entries_.erase(entry);
    }
  }

  Mutex mutex_;
  std::list<Entry> entries_ TRESTLE_GUARDED_BY(mutex_);
};

constinit PerProcess<Registry> process_registry;

void end_registry() {
  if (Registry* registry = process_registry.current()) registry->end();
}

Registry& registry() {
  return process_registry.get([] {
    (void)std::atexit(end_registry);
    return Registry();
  });
}

}  // namespace

Result<RendezvousHeld> start_rendezvous(std::vector<Listener> listeners, const RendezvousOptions& options) {
  auto server = std::make_unique<RendezvousServer>(std::move(listeners), options);
  // The ranks of a host will need it. It takes no time while the process has one thread, and some 20 ms afterwards.
  (void)register_for_heavy_fences();
  if (!server->opened()) return Error{Code::kSystemError, "no descriptor is left for the rendezvous"};
  return registry().add(std::move(server));
}

Result<RendezvousHeld> start_rendezvous(Listener listener, const RendezvousOptions& options) {
  std::vector<Listener> one;
  one.push_back(std::move(listener));
  return start_rendezvous(std::move(one), options);
}

std::optional<RunningRendezvous> hold_rendezvous(const Credentials& credentials) {
  return registry().hold(credentials);
}

void end_failed_rendezvous() {
  registry().end_failed();
}

void give_up_rendezvous(const JobId& job, int32_t rank, const Error& error) {
  registry().give_up(job, rank, error);
}

size_t running_rendezvous() {
  return registry().running();
}

}  // namespace trestle
