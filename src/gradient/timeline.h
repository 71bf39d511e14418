// When each message of a plan travels, and how long a training step takes.
//
// Sources: MG-WFBP (arXiv 1912.09268), equations 3 and 7 to 9; DeAR (arXiv 2302.12445), equations 3 to 9, for split
// steps. Pure functions, any thread. Times are seconds from the beginning of the step. One channel carries one message
// at a time; it is not interrupted, and compute goes on beside it. Copies of fused gradients lengthen their messages
// (copies.h).
#pragma once

#include <vector>

#include "gradient/plan.h"
#include "gradient/workload.h"

namespace trestle {

enum class MessageKind : uint8_t { kAllReduce, kReduceScatter, kAllGather };

struct MessageTime {
  MessageKind kind = MessageKind::kAllReduce;
  TensorGroup tensors;
  double start_s = 0;
  double end_s = 0;
};

// A step begins with its forward pass, which for kSplit also waits for all-gathers. A step of kByPriority begins with
// its backward pass and ends with the next forward pass, because nothing is on the channel then.
struct StepTime {
  double iteration_s = 0;
  double exposed_s = 0;               // iteration_s without the compute time
  double backward_start_s = 0;        // when the backward pass begins
  std::vector<MessageTime> messages;  // in the order of the channel; groups of no bytes send none
};

// The plan must pass check_plan.
StepTime time_step(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link);

}  // namespace trestle
