// StepMessages: a plan as the list of messages that every rank hands to its channel, in this order in every step.
//
// Value types and pure functions, any thread. The order follows from the plan alone and not from the order in which
// gradients become ready, so all ranks issue the same calls.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gradient/plan.h"
#include "gradient/timeline.h"

namespace trestle {

// The parts first_part .. end_part - 1 of a tensor that is cut into `parts` equal ones.
struct TensorParts {
  uint32_t tensor = 0;
  uint64_t first_part = 0;
  uint64_t end_part = 1;
  uint64_t parts = 1;
  bool operator==(const TensorParts&) const = default;
};

struct StepMessage {
  MessageKind kind = MessageKind::kAllReduce;
  TensorGroup tensors;              // it can be packed when all of these are ready
  std::vector<TensorParts> pieces;  // tensors of no bytes have none
  double bytes = 0;                 // as the cost model counts them: equal parts may have fractions
  double copied_bytes = 0;          // into a buffer and out of it, as the model counts them
  // The tensors whose result is complete with it.
  std::vector<uint32_t> results;
  // kAllGather with GatherIssue::kOneAhead: it is issued when the next forward pass comes to this tensor.
  std::optional<uint32_t> forward_at = {};
};

struct StepMessages {
  uint32_t tensors = 0;
  bool after_backward = false;        // none is issued before all gradients are ready
  uint32_t scatters = 0;              // of a split step: so many reduce-scatters come first, then the all-gathers
  bool by_parts = false;              // messages may share tensors
  bool shared_groups = false;         // the all-gathers have the groups of the reduce-scatters
  std::vector<StepMessage> messages;  // those without bytes are left out
  std::vector<bool> waits;            // by tensor: whether its result comes with a message
};

// The plan must pass check_plan, have no delayed messages, and name its runs if it is by priority.
StepMessages step_messages(const GradientPlan& plan, const GradientWorkload& workload);

// By priority, the next part depends on which gradients are ready, and ranks could differ in that. This fixes the order
// that the workload's times and the costs of an all-reduce and of copies imply, and writes it into the plan as runs.
void fix_order(GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link);

}  // namespace trestle
