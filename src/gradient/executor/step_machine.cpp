#include "gradient/executor/step_machine.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

StepMachine::StepMachine(const StepMessages& list, bool gathers_wait)
    : list_(list), gathers_wait_(gathers_wait), ready_(list.tensors) {}

void StepMachine::ready(uint32_t tensor) {
  ++ready_[tensor];
  ++ready_count_;
}

void StepMachine::forward_at(uint64_t ended_steps, uint32_t tensor) {
  forward_at_ = std::max(forward_at_, ended_steps * (list_.tensors + uint64_t{1}) + tensor + 1);
}

void StepMachine::complete() {
  CHECK(completed_ < issued_, "a message is complete that was not issued");
  ++completed_;
}

bool StepMachine::may_issue(const StepMessage& message) const {
  if (message.kind != MessageKind::kAllGather) {
    if (list_.after_backward) return all_ready();
    for (uint32_t i = message.tensors.first; i <= message.tensors.last; ++i) {
      if (ready_[i] <= step()) return false;
    }
    return true;
  }
  // The barrier between the halves. It waits for the whole backward pass, also for gradients of no bytes.
  if (!all_ready()) return false;
  if (gathers_wait_ && completed_ < step() * list_.messages.size() + list_.scatters) return false;
  if (!message.forward_at) return true;
  // A gradient of the next step shows that the forward pass before it is over.
  const bool next_backward = ready_count_ > (step() + 1) * list_.tensors;
  return next_backward || forward_at_ >= (step() + 1) * (list_.tensors + uint64_t{1}) + *message.forward_at + 1;
}

std::optional<StepMachine::Issue> StepMachine::next() {
  if (list_.messages.empty()) return std::nullopt;
  const Issue issue{static_cast<uint32_t>(issued_ % list_.messages.size()), step()};
  if (!may_issue(list_.messages[issue.message])) return std::nullopt;
  ++issued_;
  return issue;
}

StepMachine::Issue StepMachine::oldest() const {
  CHECK(!idle(), "no message is on its way");
  return {static_cast<uint32_t>(completed_ % list_.messages.size()), completed_ / list_.messages.size()};
}

bool StepMachine::finished(uint64_t steps) const {
  return ready_count_ >= steps * list_.tensors && completed_ >= steps * list_.messages.size();
}

}  // namespace trestle
