#include "cli/train/step_lanes.h"

#include <algorithm>

#include "cli/text_line.h"
#include "gradient/deft/simulate.h"
#include "gradient/policy/deft.h"

namespace trestle {
namespace {

constexpr uint32_t kShownSteps = 6;  // of delayed updates: enough to see their cycle

std::string short_name(const TensorGroup& group) {
  return group.first == group.last ? std::to_string(group.first)
                                   : std::to_string(group.first) + "-" + std::to_string(group.last);
}

std::string long_name(const TensorGroup& group) {
  return group.first == group.last ? "tensor " + std::to_string(group.first)
                                   : "tensors " + std::to_string(group.first) + " to " + std::to_string(group.last);
}

std::string megabytes(const GradientWorkload& workload, const TensorGroup& group) {
  double bytes = 0;
  for (uint32_t i = group.first; i <= group.last; ++i) bytes += static_cast<double>(workload.tensors[i].bytes);
  return line(", %.3f MB", bytes / 1e6);
}

SpanKind span_kind(MessageKind kind) {
  switch (kind) {
    case MessageKind::kAllReduce:
      return SpanKind::kAllReduce;
    case MessageKind::kReduceScatter:
      return SpanKind::kReduceScatter;
    case MessageKind::kAllGather:
      return SpanKind::kAllGather;
  }
  return SpanKind::kAllReduce;
}

// The compute lane of one step.
class Compute {
 public:
  explicit Compute(const GradientWorkload& workload) : workload_(workload) {}

  // Begins when what came before has ended, and not before `from_s`.
  void forward(const TensorGroup& group, double from_s) {
    add(SpanKind::kForward, group, from_s, &GradientTensor::forward_s);
  }
  void backward(const TensorGroup& group, double from_s) {
    add(SpanKind::kBackward, group, from_s, &GradientTensor::backward_s);
  }
  StepLane lane() && { return std::move(lane_); }

 private:
  void add(SpanKind kind, const TensorGroup& group, double from_s, double GradientTensor::*time) {
    double taken_s = 0;
    for (uint32_t i = group.first; i <= group.last; ++i) taken_s += workload_.tensors[i].*time;
    const double start_s = std::max(now_s_, from_s);
    now_s_ = start_s + taken_s;
    if (taken_s <= 0) return;
    lane_.spans.push_back(
        {kind, start_s, now_s_, short_name(group), std::string(to_string(kind)) + " of " + long_name(group)});
  }

  const GradientWorkload& workload_;
  StepLane lane_{"compute", {}};
  double now_s_ = 0;
};

// Per tensor: when the last message of this kind that has some of it ends.
std::vector<double> arrivals(const PlannedStep& step, MessageKind kind, size_t tensors) {
  std::vector<double> at(tensors, 0);
  for (const MessageTime& message : step.time.messages) {
    if (message.kind != kind) continue;
    for (uint32_t i = message.tensors.first; i <= message.tensors.last; ++i) at[i] = std::max(at[i], message.end_s);
  }
  return at;
}

// Each group waits for the messages of all its tensors. at: when those of a tensor have ended, by tensor.
void forward_pass(Compute& compute, const std::vector<TensorGroup>& groups, const std::vector<double>& at) {
  for (const TensorGroup& group : groups) {
    compute.forward(group, *std::max_element(at.begin() + group.first, at.begin() + group.last + 1));
  }
}

void backward_pass(Compute& compute, const std::vector<TensorGroup>& groups, double from_s) {
  for (size_t g = groups.size(); g-- > 0;) compute.backward(groups[g], from_s);
}

StepLane compute_lane(const PlannedStep& step, const GradientWorkload& workload) {
  Compute compute(workload);
  const size_t tensors = workload.tensors.size();
  switch (step.plan.shape) {
    case StepShape::kByPriority:
      backward_pass(compute, step.plan.groups, 0);
      forward_pass(compute, step.plan.groups, arrivals(step, MessageKind::kAllReduce, tensors));
      break;
    case StepShape::kSplit:
      forward_pass(compute, step.plan.gather_groups, arrivals(step, MessageKind::kAllGather, tensors));
      backward_pass(compute, step.plan.groups, step.time.backward_start_s);
      break;
    default:
      forward_pass(compute, step.plan.groups, std::vector<double>(tensors, 0));
      backward_pass(compute, step.plan.groups, step.time.backward_start_s);
  }
  return std::move(compute).lane();
}

StepLane link_lane(const PlannedStep& step, const GradientWorkload& workload) {
  StepLane lane{"link", {}};
  for (const MessageTime& message : step.time.messages) {
    const SpanKind kind = span_kind(message.kind);
    // A message of parts has fewer bytes than its tensors.
    const bool parts = step.plan.shape == StepShape::kByPriority;
    lane.spans.push_back({kind, message.start_s, message.end_s, short_name(message.tensors),
                          std::string(to_string(kind)) + (parts ? " of parts of " : " of ") +
                              long_name(message.tensors) + (parts ? "" : megabytes(workload, message.tensors))});
  }
  return lane;
}

// ---- Delayed updates: several steps

StepLane deft_compute(const DeftRun& run, const DeftSystem& system, uint32_t steps) {
  StepLane lane{"compute", {}};
  const double forward_s = static_cast<double>(forward_us(system.buckets)) / 1e6;
  const double backward_s = static_cast<double>(backward_us(system.buckets)) / 1e6;
  double now_s = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    const std::string of_step = " of step " + std::to_string(i);
    lane.spans.push_back({SpanKind::kForward, now_s, now_s + forward_s, std::to_string(i), "forward" + of_step});
    now_s += forward_s;
    const uint32_t batches = run.update_batches[i];
    lane.spans.push_back(
        {SpanKind::kBackward, now_s, now_s + backward_s, std::to_string(i),
         "backward" + of_step +
             (batches == 0 ? std::string(", no update") : line(", then an update with %u steps' gradients", batches))});
    now_s = static_cast<double>(run.ends_ns[i]) / 1e9;
  }
  return lane;
}

Result<StepLanes> deft_lanes(const PlannedStep& step, const StepPlanRequest& request) {
  const DeftSystem system = TRY(deft_system(request, step.plan.groups));
  const std::vector<DeftItem> items = TRY(deft_partition(system));
  const DeftRun run = TRY(simulate_deft(system, kShownSteps, step.plan.capacity_permille));
  StepLanes lanes{step.policy, step.time.iteration_s, static_cast<double>(run.ends_ns.back()) / 1e9, {}};
  lanes.lanes.push_back(deft_compute(run, system, kShownSteps));
  for (size_t link = 0; link < system.links.size(); ++link) lanes.lanes.push_back({"link " + std::to_string(link), {}});
  for (const DeftMessage& message : run.messages) {
    const double start_s = static_cast<double>(message.start_ns) / 1e9;
    if (start_s >= lanes.shown_s) continue;
    const double end_s = std::min(static_cast<double>(message.end_ns) / 1e9, lanes.shown_s);
    const DeftItem& item = items[message.item];
    const TensorGroup& group = step.plan.groups[item.bucket];
    const std::string part = item.parts == 1 ? "" : line(", part %u of %u", item.part + 1, item.parts);
    lanes.lanes[message.link + 1].spans.push_back(
        {SpanKind::kAllReduce, start_s, end_s, short_name(group),
         "all-reduce of " + long_name(group) + part + megabytes(request.workload, group)});
  }
  return lanes;
}

}  // namespace

const char* to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::kForward:
      return "forward";
    case SpanKind::kBackward:
      return "backward";
    case SpanKind::kAllReduce:
      return "all-reduce";
    case SpanKind::kReduceScatter:
      return "reduce-scatter";
    case SpanKind::kAllGather:
      return "all-gather";
  }
  return "?";
}

Result<StepLanes> step_lanes(const PlannedStep& step, const StepPlanRequest& request) {
  if (step.plan.shape == StepShape::kDelayed) return deft_lanes(step, request);
  StepLanes lanes{step.policy, step.time.iteration_s, step.time.iteration_s, {}};
  lanes.lanes.push_back(compute_lane(step, request.workload));
  lanes.lanes.push_back(link_lane(step, request.workload));
  return lanes;
}

}  // namespace trestle
