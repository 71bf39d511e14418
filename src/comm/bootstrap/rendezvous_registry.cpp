// The rendezvous servers of this process and their threads.
#include <unistd.h>

#include <atomic>
#include <list>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "comm/bootstrap/rendezvous_server_impl.h"

namespace trestle {
namespace {

class Registry {
 public:
  ~Registry() {
    const bool forked = owner_ != getpid();
    if (!forked) {
      for (Entry& entry : entries_) entry.server->stop();  // all say their farewells at the same time
    }
    for (Entry& entry : entries_) {
      if (forked) {
        entry.thread.forget();  // it runs in the parent only
        (void)entry.server.release();
      } else {
        entry.thread.join();
      }
    }
  }

  Status add(std::unique_ptr<RendezvousServer> server) {
    const MutexLock lock(mutex_);
    reap();
    entries_.emplace_back(std::move(server));
    Entry& entry = entries_.back();
    auto thread = Thread::start([&entry] {
      entry.server->run();
      entry.done.store(true, std::memory_order_release);
    });
    if (!thread.ok()) {
      entries_.pop_back();
      return std::move(thread).error();
    }
    entry.thread = std::move(thread).value();
    return {};
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

  void reap() TRESTLE_REQUIRES(mutex_) {
    if (owner_ != getpid()) {  // after a fork
      for (Entry& entry : entries_) {
        entry.thread.forget();
        (void)entry.server.release();
      }
      entries_.clear();
      owner_ = getpid();
    }
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
  pid_t owner_ TRESTLE_GUARDED_BY(mutex_) = getpid();
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

Status start_rendezvous(Listener listener, const RendezvousOptions& options) {
  auto server = std::make_unique<RendezvousServer>(std::move(listener), options);
  if (!server->opened()) return Error{Code::kSystemError, "no descriptor is left for the rendezvous"};
  return registry().add(std::move(server));
}

size_t running_rendezvous() {
  return registry().running();
}

}  // namespace trestle
