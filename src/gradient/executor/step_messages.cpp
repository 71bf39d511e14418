#include "gradient/executor/step_messages.h"

#include <algorithm>

#include "base/check.h"
#include "gradient/copies.h"
#include "gradient/part_channel.h"

namespace trestle {
namespace {

StepMessage group_message(MessageKind kind, const TensorGroup& group, const GradientWorkload& workload) {
  StepMessage message;
  message.kind = kind;
  message.tensors = group;
  uint64_t bytes = 0;
  for (uint32_t i = group.first; i <= group.last; ++i) {
    bytes += workload.tensors[i].bytes;
    if (workload.tensors[i].bytes > 0) message.pieces.push_back({i});
  }
  message.bytes = static_cast<double>(bytes);
  return message;
}

void add_backward(const GradientPlan& plan, const GradientWorkload& workload, MessageKind kind, StepMessages& step) {
  for (size_t g = plan.groups.size(); g-- > 0;) {
    StepMessage message = group_message(kind, plan.groups[g], workload);
    if (!message.pieces.empty()) step.messages.push_back(std::move(message));
  }
}

void add_gathers(const GradientPlan& plan, const GradientWorkload& workload, StepMessages& step) {
  step.scatters = static_cast<uint32_t>(step.messages.size());
  step.shared_groups = plan.groups == plan.gather_groups;
  for (size_t g = 0; g < plan.gather_groups.size(); ++g) {
    StepMessage message = group_message(MessageKind::kAllGather, plan.gather_groups[g], workload);
    if (plan.gather == GatherIssue::kOneAhead && g > 0) message.forward_at = plan.gather_groups[g - 1].first;
    if (!message.pieces.empty()) step.messages.push_back(std::move(message));
  }
}

void add_runs(const GradientPlan& plan, const GradientWorkload& workload, StepMessages& step) {
  const PartChannel parts(workload, {}, plan.part_bytes);
  for (const PartRun& run : plan.runs) {
    StepMessage message;
    message.tensors = {run.first_tensor, run.last_tensor};
    message.bytes = parts.bytes_of(run);
    message.copied_bytes = parts.copied_bytes(run);
    for (uint32_t i = run.first_tensor; i <= run.last_tensor; ++i) {
      const uint64_t all = parts.parts_of_tensor(i);
      if (all == 0) continue;
      const uint64_t begin = i == run.first_tensor ? run.first_part : 0;
      const uint64_t end = i == run.last_tensor ? run.last_part + 1 : all;
      message.pieces.push_back({i, begin, end, all});
    }
    step.messages.push_back(std::move(message));
  }
}

void count_copies(const GradientPlan& plan, const GradientWorkload& workload, StepMessages& step) {
  const MessageCopies copies(workload);
  for (StepMessage& message : step.messages)
    message.copied_bytes = message.bytes * copies.of(message.kind, message.tensors, shards_tensors(plan));
}

// A tensor's result is complete with the last message that has a part of it, because messages complete in their order.
// As in the timeline, a group is complete as a whole: a tensor of no bytes is complete with the others.
void find_results(StepMessages& step, bool groups) {
  step.waits.resize(step.tensors);
  const auto add = [&step](StepMessage& message, uint32_t tensor) {
    if (!step.waits[tensor]) message.results.push_back(tensor);
    step.waits[tensor] = true;
  };
  for (size_t m = step.messages.size(); m-- > step.scatters;) {
    StepMessage& message = step.messages[m];
    for (const TensorParts& piece : message.pieces) add(message, piece.tensor);
    for (uint32_t i = message.tensors.first; groups && i <= message.tensors.last; ++i) add(message, i);
  }
}

}  // namespace

StepMessages step_messages(const GradientPlan& plan, const GradientWorkload& workload) {
  CHECK(plan.shape != StepShape::kDelayed, "delayed messages are in no step's list");
  StepMessages step;
  step.tensors = static_cast<uint32_t>(workload.tensors.size());
  step.after_backward = plan.shape == StepShape::kAfterBackward;
  step.by_parts = plan.shape == StepShape::kByPriority;
  if (step.by_parts) {
    add_runs(plan, workload, step);
  } else {
    const bool split = plan.shape == StepShape::kSplit;
    add_backward(plan, workload, split ? MessageKind::kReduceScatter : MessageKind::kAllReduce, step);
    if (split) add_gathers(plan, workload, step);
    count_copies(plan, workload, step);
  }
  find_results(step, !step.by_parts);
  return step;
}

void fix_order(GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link) {
  if (plan.shape != StepShape::kByPriority) return;
  MessageCost each = link.all_reduce;
  each.startup_s += plan.negotiation_s;
  PartChannel channel(workload, each, plan.part_bytes, link.copy_per_byte_s);
  for (const PartRun& run : plan.runs) {
    channel.wait_for(run);
    channel.send(run);
  }
  while (!channel.all_sent()) {
    channel.wait();
    const PartRun run = channel.next_run(1);
    channel.send(run);
    plan.runs.push_back(run);
  }
}

}  // namespace trestle
