// A planned training step as lanes over time: one of compute, and one for each link with its messages. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradient/policy/policy.h"

namespace trestle {

enum class SpanKind : uint8_t { kForward, kBackward, kAllReduce, kReduceScatter, kAllGather };
const char* to_string(SpanKind kind);

struct LaneSpan {
  SpanKind kind = SpanKind::kForward;
  double start_s = 0;
  double end_s = 0;
  std::string label;    // the tensors: "3-7"; where several steps are shown, a pass has the step's number
  std::string details;  // "all-reduce of tensors 3 to 7, 4.2 MB"
};

struct StepLane {
  std::string name;             // "compute", "link", "link 1"
  std::vector<LaneSpan> spans;  // in order, without overlap
};

struct StepLanes {
  std::string policy;
  double iteration_s = 0;
  double shown_s = 0;  // one step; of delayed updates the first six
  std::vector<StepLane> lanes;
};

// request: the one that the step was planned for. A step of parts of tensors begins with its backward pass (StepTime,
// gradient/timeline.h). Errors: those of deft_system and simulate_deft.
Result<StepLanes> step_lanes(const PlannedStep& step, const StepPlanRequest& request);

}  // namespace trestle
