// HeldRendezvous: the hold of a communicator on the rendezvous where the ranks met (rendezvous/server/hold.h), at the
// rank whose process has it: from the creation to the communicator's end, or the first failure of one that holds it.
// If two jobs meet there, it fails the communicator. What is split off shares the hold, and keeps it when the parent
// ends.
//
// Owned by the communicator, which says when it begins and ends. Any thread.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "comm/watch/failure_listeners.h"
#include "engine/run/engine.h"
#include "rendezvous/server/hold.h"

namespace trestle {

class HeldRendezvous {
 public:
  ~HeldRendezvous() { let_go(); }

  // hold: nullptr if this rank's process has none.
  void take(std::shared_ptr<RendezvousHold> hold, const std::shared_ptr<FailureListeners>& listeners,
            const std::shared_ptr<Engine>& engine) {
    if (hold == nullptr) return;
    auto held = std::make_unique<Held>(std::move(hold), listeners, engine);
    const MutexLock lock(mutex_);
    held_ = std::move(held);
  }
  void let_go() {
    std::unique_ptr<Held> held;
    const MutexLock lock(mutex_);
    held.swap(held_);
  }
  // For what is split off; nullptr: there is none.
  std::shared_ptr<RendezvousHold> share() const {
    const MutexLock lock(mutex_);
    return held_ == nullptr ? nullptr : held_->hold;
  }

 private:
  struct Held {
    Held(std::shared_ptr<RendezvousHold> taken, const std::shared_ptr<FailureListeners>& listeners,
         const std::shared_ptr<Engine>& engine)
        : hold(std::move(taken)), failure(listeners, [held = hold.get()](const Error&) { held->release(); }) {
      if (engine->failed()) hold->release();
      number = hold->on_conflict([engine = std::weak_ptr(engine)](const Error& error) {
        if (const auto living = engine.lock()) living->fail(error);
      });
    }
    ~Held() { hold->forget(number); }

    const std::shared_ptr<RendezvousHold> hold;
    // The ranks of a failed communicator may come again, also as other processes.
    const FailureListeners::Registration failure;
    uint64_t number = 0;
  };

  mutable Mutex mutex_;
  std::unique_ptr<Held> held_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
