// The executor's state machine on a virtual clock: a compute thread with the workload's times, and a serial channel
// with the link's costs. One thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "gradient/executor/step_machine.h"

namespace trestle {

struct VirtualMessage {
  uint32_t message = 0;
  uint64_t step = 0;
  double start_s = 0;
  double end_s = 0;
};

struct VirtualRun {
  std::vector<double> ends_s;  // per step, in the sense of StepTime
  std::vector<VirtualMessage> messages;
};

class VirtualStep {
 public:
  VirtualStep(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link, bool gathers_wait)
      : plan_(plan),
        workload_(workload),
        link_(link),
        list_(step_messages(plan, workload)),
        machine_(list_, gathers_wait),
        tensors_(static_cast<uint32_t>(workload.tensors.size())),
        results_(tensors_) {}

  // The gradients become ready in the order of the backward pass.
  VirtualRun run(uint64_t steps) {
    for (uint64_t step = 0; step < steps; ++step) {
      if (plan_.shape == StepShape::kByPriority) {
        backward();
        forward(step + 1);
        run_.ends_s.push_back(now_);
        continue;
      }
      forward(step);
      backward();
      // Whole all-reduces and the barrier of split steps: the step ends when both passes' messages are complete.
      while (completed_ < step * list_.messages.size() + before_barrier()) wait();
      run_.ends_s.push_back(now_);
    }
    machine_.forward_at(steps, tensors_);  // nothing holds back the all-gathers of the last step
    pump();
    while (!queue_.empty()) wait();
    return run_;
  }
  const StepMessages& list() const { return list_; }
  const StepMachine& machine() const { return machine_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  size_t before_barrier() const { return plan_.shape == StepShape::kSplit ? list_.scatters : list_.messages.size(); }
  double cost_of(const StepMessage& message) const {
    MessageCost cost = message.kind == MessageKind::kAllReduce       ? link_.all_reduce
                       : message.kind == MessageKind::kReduceScatter ? link_.reduce_scatter
                                                                     : link_.all_gather;
    if (plan_.shape == StepShape::kByPriority) cost.startup_s += plan_.negotiation_s;
    return cost.startup_s + cost.per_byte_s * message.bytes + link_.copy_per_byte_s * message.copied_bytes;
  }
  // Issues what may be issued, and starts the channel if it is free.
  void pump() {
    while (const auto issue = machine_.next()) queue_.push_back(*issue);
    if (queue_.empty() || end_ != kNever) return;
    end_ = now_ + cost_of(list_.messages[queue_.front().message]);
    run_.messages.push_back({queue_.front().message, queue_.front().step, now_, end_});
  }
  // Advances to the end of the message on the channel.
  void wait() {
    pump();
    ASSERT_NE(end_, kNever) << "compute waits for a message that nobody sends";
    now_ = std::max(now_, end_);
    finish();
  }
  void finish() {
    ASSERT_EQ(machine_.oldest(), queue_.front());
    machine_.complete();
    ++completed_;
    for (const uint32_t tensor : list_.messages[queue_.front().message].results) {
      results_[tensor] = queue_.front().step + 1;
    }
    queue_.pop_front();
    end_ = kNever;
    pump();
  }
  // Computes while the channel goes on.
  void compute(double seconds) {
    const double until = now_ + seconds;
    pump();
    while (end_ <= until) {
      now_ = end_;
      finish();
    }
    now_ = until;
  }
  void forward(uint64_t steps_before) {
    for (uint32_t i = 0; i < tensors_; ++i) {
      while (list_.waits[i] && results_[i] < steps_before && !testing::Test::HasFatalFailure()) wait();
      if (steps_before > 0) machine_.forward_at(steps_before, i);
      compute(workload_.tensors[i].forward_s);
    }
  }
  void backward() {
    for (uint32_t i = tensors_; i-- > 0;) {
      compute(workload_.tensors[i].backward_s);
      machine_.ready(i);
      pump();
    }
  }

  const GradientPlan& plan_;
  const GradientWorkload& workload_;
  const GradientLink& link_;
  const StepMessages list_;
  StepMachine machine_;
  const uint32_t tensors_;
  std::vector<uint64_t> results_;
  std::deque<StepMachine::Issue> queue_;
  double now_ = 0;
  double end_ = kNever;  // of the message on the channel
  size_t completed_ = 0;
  VirtualRun run_;
};

}  // namespace trestle
