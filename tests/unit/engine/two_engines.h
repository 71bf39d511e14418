// Streams with operations of two communicators, for tests of what a failure of one does to the other.
#pragma once

#include "unit/engine/streams.h"

namespace trestle {

// Long enough to take memory wherever it is copied.
inline const Error kGone{Code::kRemoteError, "rank 1 went away, and this sentence is too long for a short string"};

class TwoEngines : public Streams {
 protected:
  void SetUp() override {
    Streams::SetUp();
    other_ = make_engine(other_gate_);
  }
  // An operation of the other communicator.
  Operation* other(uint64_t number) { return operation_of(*other_, number); }
  void drive_both() {
    while (engine_->try_progress() || other_->try_progress()) {
    }
  }
  // The time passes in which a control mesh reports a cause, if it knows one.
  void pass_a_moment() {
    clock_.advance_to(clock_.now_ns() + 2'000'000'000);
    drive_both();
  }

  GatedTransport* other_gate_ = nullptr;
  std::shared_ptr<Engine> other_;
};

}  // namespace trestle
