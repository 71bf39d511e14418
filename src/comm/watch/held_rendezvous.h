// HeldRendezvous: the hold of rank 0's communicator on the rendezvous where its ranks met (rendezvous/hold.h), from its
// creation to its failure or end. It fails the communicator if two jobs meet there.
//
// Owned by the communicator. Any thread.
#pragma once

#include <memory>
#include <utility>

#include "comm/watch/failure_listeners.h"
#include "engine/run/engine.h"
#include "rendezvous/server/hold.h"

namespace trestle {

class HeldRendezvous {
 public:
  HeldRendezvous(std::shared_ptr<RendezvousHold> hold, const std::shared_ptr<FailureListeners>& listeners,
                 const std::shared_ptr<Engine>& engine)
      : hold_(std::move(hold)), failure_(listeners, [held = hold_](const Error&) { held->release(); }) {
    if (engine->failed()) hold_->release();
    hold_->on_conflict([engine = std::weak_ptr(engine)](const Error& error) {
      if (const auto living = engine.lock()) living->fail(error);
    });
  }

 private:
  // A failed communicator holds nothing: its ranks may come again, also as other processes.
  const std::shared_ptr<RendezvousHold> hold_;
  const FailureListeners::Registration failure_;
};

}  // namespace trestle
