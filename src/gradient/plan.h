// GradientPlan: which gradients travel together in a training step, and when. Value types, any thread.
//
// A plan names tensors, not times: src/gradient/timeline.h says when each message travels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gradient/deft_buckets.h"
#include "gradient/workload.h"

namespace trestle {

enum class StepShape : uint8_t {
  kAfterBackward,   // all-reduces of the groups, L-1's first, once the backward pass is complete
  kBehindBackward,  // all-reduces of the groups, L-1's first, each as soon as its group is ready
  // Reduce-scatters of `groups` as kBehindBackward; when all are complete, all-gathers of `gather_groups`, 0's first.
  // The next forward pass of a tensor waits for its all-gather.
  kSplit,
  // All-reduces of parts of tensors, the lowest ready tensor first. The next forward pass of a tensor waits for its
  // parts.
  kByPriority,
  // All-reduces of the groups, cut into parts, in the passes and on the links that DeftQueues chooses, up to several
  // steps later. It has no fixed timeline: time_step() does not take it.
  kDelayed,
};

// When an all-gather is handed to the channel.
enum class GatherIssue : uint8_t {
  kEager,     // all of them when the reduce-scatters are complete
  kOneAhead,  // the next one when the forward pass of the present group begins
};

// Consecutive parts that travel as one message: from a part of one tensor to a part of the same or a later tensor.
struct PartRun {
  uint32_t first_tensor = 0;
  uint64_t first_part = 0;
  uint32_t last_tensor = 0;
  uint64_t last_part = 0;
  bool operator==(const PartRun&) const = default;
};

struct GradientPlan {
  StepShape shape = StepShape::kBehindBackward;
  // In forward order; together all tensors, each once. kByPriority: every tensor alone.
  std::vector<TensorGroup> groups;
  std::vector<TensorGroup> gather_groups;  // kSplit only; the same rule
  GatherIssue gather = GatherIssue::kEager;
  uint64_t part_bytes = 0;    // kByPriority: most bytes of a part; a tensor has equal parts
  double negotiation_s = 0;   // kByPriority: time that workers take to agree on a message; the channel waits for it
  std::vector<PartRun> runs;  // kByPriority: the messages in order; empty: each part alone, the lowest tensor first
  // kDelayed: one bucket for each group. With the capacities of DeftQueues it fixes what travels when, in all steps.
  DeftSystem delayed;
  uint32_t capacity_permille = 1000;
  bool operator==(const GradientPlan&) const = default;
};

// Errors (kInternalError) say which rule of the members above a plan for that many tensors breaks. kDelayed: also those
// of check_deft.
Status check_plan(const GradientPlan& plan, size_t tensors);

}  // namespace trestle
