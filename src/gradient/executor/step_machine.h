// StepMachine: decides which message is handed to the channel, and when. A pure state machine without a clock: the
// scheduler's thread feeds it with real events, and tests with those of a virtual clock.
//
// One thread at a time. Messages are issued in the order of the plan, and complete in that order, because the channel
// is one stream. Steps are counted from 0, from the creation of the machine. Gradients of the next step may become
// ready while all-gathers of this one are still on their way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gradient/executor/step_messages.h"

namespace trestle {

class StepMachine {
 public:
  struct Issue {
    uint32_t message = 0;  // its number in the list
    uint64_t step = 0;
    bool operator==(const Issue&) const = default;
  };

  // gathers_wait: the all-gathers are issued when the reduce-scatters are complete and not when they are issued,
  // because an update comes between them. The list must live longer.
  StepMachine(const StepMessages& list, bool gathers_wait);

  // ---- events
  // A gradient is ready. Once per tensor and step, in any order.
  void ready(uint32_t tensor);
  // The forward pass after so many ended steps has come to this tensor, or past it.
  void forward_at(uint64_t ended_steps, uint32_t tensor);
  // The oldest message that was issued and not completed is complete.
  void complete();

  // ---- decisions
  // The message to issue now, if there is one. It counts as issued. Ask until there is none.
  std::optional<Issue> next();
  // The message that complete() will complete.
  Issue oldest() const;
  uint64_t ready_in(uint32_t tensor) const { return ready_[tensor]; }  // steps
  bool idle() const { return issued_ == completed_; }
  // Whether so many steps have all their gradients, and all their messages are complete.
  bool finished(uint64_t steps) const;

 private:
  bool may_issue(const StepMessage& message) const;
  bool all_ready() const { return ready_count_ >= (step() + 1) * list_.tensors; }
  uint64_t step() const { return issued_ / list_.messages.size(); }

  const StepMessages& list_;
  const bool gathers_wait_;
  std::vector<uint64_t> ready_;  // by tensor: in how many steps
  uint64_t ready_count_ = 0;
  uint64_t forward_at_ = 0;  // the furthest place: ended steps * (tensors + 1) + tensor + 1
  uint64_t issued_ = 0;      // messages, over all steps
  uint64_t completed_ = 0;
};

}  // namespace trestle
