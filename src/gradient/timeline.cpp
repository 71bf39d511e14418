#include "gradient/timeline.h"
#include "base/check.h"

#include <algorithm>

#include "gradient/copies.h"
#include "gradient/part_channel.h"

namespace trestle {
namespace {

uint64_t bytes_of(const GradientWorkload& workload, const TensorGroup& group) {
  uint64_t sum = 0;
  for (uint32_t i = group.first; i <= group.last; ++i) sum += workload.tensors[i].bytes;
  return sum;
}

// What one message costs with its copies.
class Costs {
 public:
  Costs(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link)
      : link_(link), copies_(workload), sharded_(shards_tensors(plan)) {}

  MessageCost of(MessageKind kind, const TensorGroup& group) const {
    const MessageCost& cost = kind == MessageKind::kAllReduce       ? link_.all_reduce
                              : kind == MessageKind::kReduceScatter ? link_.reduce_scatter
                                                                    : link_.all_gather;
    return with_copies(cost, link_.copy_per_byte_s, copies_.of(kind, group, sharded_));
  }

 private:
  const GradientLink& link_;
  const MessageCopies copies_;
  const bool sharded_;
};

// The serial channel. Notes every message.
class Channel {
 public:
  Channel(const GradientWorkload& workload, const Costs& costs, StepTime& step)
      : workload_(workload), costs_(costs), step_(step) {}

  // Returns the time at which the message ends. A message of no bytes is not sent: it ends when it is ready and those
  // before it have ended.
  double send(MessageKind kind, const TensorGroup& group, double ready_s) {
    const uint64_t bytes = bytes_of(workload_, group);
    const double start = std::max(free_s_, ready_s);
    free_s_ = start + costs_.of(kind, group).of(bytes);
    if (bytes > 0) step_.messages.push_back({kind, group, start, free_s_});
    return free_s_;
  }
  void begin_at(double time_s) { free_s_ = time_s; }

 private:
  const GradientWorkload& workload_;
  const Costs& costs_;
  StepTime& step_;
  double free_s_ = 0;
};

// Equations 3 and 7 to 9 of MG-WFBP. `first_s`: no message starts earlier.
void all_reduce_groups(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link,
                       double first_s, StepTime& step) {
  const std::vector<double> ready = workload.ready_s();
  const Costs costs(plan, workload, link);
  Channel channel(workload, costs, step);
  double end = ready.front();
  for (size_t g = plan.groups.size(); g-- > 0;) {
    const TensorGroup& group = plan.groups[g];
    end = channel.send(MessageKind::kAllReduce, group, std::max(first_s, ready[group.first]));
  }
  step.backward_start_s = workload.forward_s();
  step.iteration_s = std::max(end, ready.front());
}

// DeAR's FeedPipe. Returns the time at which the forward pass ends.
double gather_and_forward(const GradientPlan& plan, const GradientWorkload& workload, const Costs& costs,
                          StepTime& step) {
  Channel channel(workload, costs, step);
  double now = 0;
  double issued = 0;
  for (const TensorGroup& group : plan.gather_groups) {
    now = std::max(now, channel.send(MessageKind::kAllGather, group, issued));
    if (plan.gather == GatherIssue::kOneAhead) issued = now;
    for (uint32_t i = group.first; i <= group.last; ++i) now += workload.tensors[i].forward_s;
  }
  return now;
}

// DeAR's BackPipe begins when the forward pass has ended. The barrier behind it costs nothing: the group that the
// forward pass needs first is the last one on the channel.
void split_step(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link, StepTime& step) {
  const Costs costs(plan, workload, link);
  step.backward_start_s = gather_and_forward(plan, workload, costs, step);
  const std::vector<double> ready = workload.ready_s();
  const double shift = step.backward_start_s - workload.forward_s();
  Channel channel(workload, costs, step);
  channel.begin_at(step.backward_start_s);
  double end = ready.front() + shift;
  for (size_t g = plan.groups.size(); g-- > 0;) {
    const TensorGroup& group = plan.groups[g];
    end = channel.send(MessageKind::kReduceScatter, group, ready[group.first] + shift);
  }
  step.iteration_s = std::max(end, ready.front() + shift);
}

void priority_step(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link,
                   StepTime& step) {
  MessageCost cost = link.all_reduce;
  cost.startup_s += plan.negotiation_s;
  PartChannel channel(workload, cost, plan.part_bytes, link.copy_per_byte_s);
  for (const PartRun& run : plan.runs) {
    channel.wait_for(run);
    step.messages.push_back(channel.send(run));
  }
  while (!channel.all_sent()) {
    channel.wait();
    step.messages.push_back(channel.send(channel.next_run(1)));
  }
  step.iteration_s = channel.forward_end_s();
}

}  // namespace

StepTime time_step(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link) {
  StepTime step;
  const double compute_s = workload.forward_s() + workload.backward_s();
  switch (plan.shape) {
    case StepShape::kAfterBackward:
      all_reduce_groups(plan, workload, link, compute_s, step);
      break;
    case StepShape::kBehindBackward:
      all_reduce_groups(plan, workload, link, 0, step);
      break;
    case StepShape::kSplit:
      split_step(plan, workload, link, step);
      break;
    case StepShape::kByPriority:
      priority_step(plan, workload, link, step);
      break;
    case StepShape::kDelayed:
      CHECK(false, "a step whose messages are delayed has no timeline of its own");
  }
  step.exposed_s = std::max(step.iteration_s - compute_s, 0.0);
  return step;
}

}  // namespace trestle
