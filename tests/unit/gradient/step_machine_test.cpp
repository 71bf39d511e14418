// The executor's state machine: on a virtual clock it takes exactly the time that the plan predicts; whatever the order
// of events, it issues the plan's messages in the plan's order, each once per step.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include "gradient/policy/policies.h"
#include "gradient/policy/topk.h"
#include "unit/gradient/virtual_step.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace step_machine_test {
namespace {

// Times are multiples of 1/1024, and sizes small powers of two. So sums of them are exact, in any order.
double dyadic(Rng& rng) {
  return static_cast<double>(rng.below(4096)) / 1024;
}

GradientWorkload dyadic_workload(Rng& rng, size_t most_tensors) {
  GradientWorkload workload;
  const size_t tensors = 1 + rng.below(most_tensors);
  for (size_t i = 0; i < tensors; ++i) {
    const uint64_t bytes = rng.below(5) == 0 ? 0 : uint64_t{1} << rng.below(24);
    const bool works = rng.below(4) != 0;
    workload.tensors.push_back({"w" + std::to_string(i), bytes, works ? dyadic(rng) : 0, works ? dyadic(rng) : 0,
                                static_cast<TensorPlace>(rng.below(3))});
  }
  return workload;
}

GradientLink dyadic_link(Rng& rng) {
  const auto cost = [&] {
    return MessageCost{rng.below(4) == 0 ? 0 : dyadic(rng), static_cast<double>(rng.below(8)) / (1 << 22)};
  };
  const double copies = rng.below(2) == 0 ? 0 : static_cast<double>(1 + rng.below(8)) / (1 << 23);
  return {cost(), cost(), cost(), copies};
}

// Every variant that is carried out, and some with smaller buffers: of several messages also for small workloads.
std::vector<ChosenPolicy> policies_to_try() {
  std::vector<ChosenPolicy> all = allowed_policies(kLibertyNone);
  for (const char* text :
       {"threshold:1M", "nearby:2", "dear:1M:lookahead", "dear:1M:eager", "priority:64K", "us_byte:64K"}) {
    all.push_back(parse_gradient_policy(text).value());
  }
  return all;
}

GradientPlan plan_of(const ChosenPolicy& chosen, const GradientWorkload& workload, const GradientLink& link) {
  GradientPlan plan = plan_step(chosen, workload, link).value().plan;
  fix_order(plan, workload, link);
  return plan;
}

TEST(StepMachine, TakesExactlyThePredictedTime) {
  Rng rng(11);
  const std::vector<ChosenPolicy> all = policies_to_try();
  std::set<StepShape> shapes;
  size_t late_gathers = 0;
  for (int round = 0; round < 600; ++round) {
    const GradientWorkload workload = dyadic_workload(rng, 14);
    const GradientLink link = dyadic_link(rng);
    const ChosenPolicy& chosen = all[round % all.size()];
    const GradientPlan plan = plan_of(chosen, workload, link);
    SCOPED_TRACE(chosen.text + ", round " + std::to_string(round));
    const StepTime predicted = time_step(plan, workload, link);
    for (const bool gathers_wait : {false, true}) {
      VirtualStep virtual_step(plan, workload, link, gathers_wait);
      const VirtualRun run = virtual_step.run(4);
      ASSERT_EQ(run.ends_s.size(), 4U);
      // A third of a tensor is not dyadic. The first step has the sums of the prediction all the same.
      const bool parts = plan.shape == StepShape::kByPriority;
      if (parts) {
        ASSERT_EQ(run.ends_s[0], predicted.iteration_s);
      }
      // The first split step has no all-gathers before it.
      for (size_t step = 1; step < 4 && !parts; ++step) {
        ASSERT_EQ(run.ends_s[step] - run.ends_s[step - 1], predicted.iteration_s) << "step " << step;
      }
      ASSERT_TRUE(virtual_step.machine().finished(4));
      ASSERT_EQ(run.messages.size(), 4 * virtual_step.list().messages.size());
      ASSERT_EQ(virtual_step.list().messages.size(), predicted.messages.size());
      for (const StepMessage& message : virtual_step.list().messages) late_gathers += message.forward_at.has_value();
    }
    shapes.insert(plan.shape);
  }
  EXPECT_EQ(shapes.size(), 4U);
  EXPECT_GT(late_gathers, 20U);
}

// Also of a plan that compresses, on a clock that stops while elements are selected: then nothing is sent or computed.
TEST(StepMachine, TakesExactlyThePredictedTimeOfCompressedSteps) {
  Rng rng(15);
  std::set<std::string> collectives;
  for (int round = 0; round < 300; ++round) {
    const GradientWorkload workload = dyadic_workload(rng, 14);
    // A power of two, so that the logarithm and the shares of a ring are exact.
    const NetworkModel network{dyadic(rng), static_cast<double>(rng.below(8)) / (1 << 22), 0, 2u << rng.below(5)};
    const char* const policy = std::array{"topk:0.5", "topk:0.125", "topk:0.0009765625"}[round % 3];
    SCOPED_TRACE(policy + std::string(", round ") + std::to_string(round));
    const StepPlanRequest request{workload, {}, {}, kLibertyCompress, {}, {}, network};
    const PlannedStep planned = plan_step(parse_gradient_policy(policy).value(), request).value();
    const auto bytes = static_cast<double>(workload.bytes());
    const SparseHalves halves =
        sparse_halves(network, sparse_collective(network, bytes, planned.compressed->ratio), planned.compressed->ratio);
    const GradientLink link{{}, halves.backward, halves.forward};
    const VirtualRun run = VirtualStep(planned.plan, workload, link, false).run(4);
    for (size_t step = 1; step < 4; ++step) {
      const double iteration_s = run.ends_s[step] - run.ends_s[step - 1];
      ASSERT_EQ(iteration_s + planned.compressed->selection_s, planned.time.iteration_s) << "step " << step;
    }
    collectives.insert(planned.compressed->collective);
  }
  EXPECT_EQ(collectives.size(), 3U);
}

// The single messages too: when each starts and ends.
TEST(StepMachine, SendsEachMessageWhenPredicted) {
  Rng rng(12);
  for (int round = 0; round < 300; ++round) {
    const GradientWorkload workload = dyadic_workload(rng, 12);
    const GradientLink link = dyadic_link(rng);
    for (const char* policy : {"wfbp", "optimal", "naive", "split_optimal:free", "dear:1M:lookahead"}) {
      SCOPED_TRACE(policy + std::string(", round ") + std::to_string(round));
      const GradientPlan plan = plan_of(parse_gradient_policy(policy).value(), workload, link);
      const StepTime predicted = time_step(plan, workload, link);
      VirtualStep virtual_step(plan, workload, link, true);
      const VirtualRun run = virtual_step.run(2);
      // The prediction begins with the all-gathers of the step before.
      const size_t messages = predicted.messages.size();
      const size_t first = virtual_step.list().messages.size() == 0 ? 0
                           : plan.shape == StepShape::kSplit        ? virtual_step.list().scatters
                                                                    : messages;
      for (size_t m = 0; m < messages; ++m) {
        const VirtualMessage& sent = run.messages[first + m];
        ASSERT_EQ(sent.start_s - run.ends_s[0], predicted.messages[m].start_s) << m;
        ASSERT_EQ(sent.end_s - run.ends_s[0], predicted.messages[m].end_s) << m;
        ASSERT_EQ(virtual_step.list().messages[sent.message].tensors, predicted.messages[m].tensors) << m;
      }
    }
  }
}

// Real times, whose sums round.
TEST(StepMachine, TakesThePredictedTimeOfRealNetworks) {
  for (const char* network : {"resnet50@dear", "bert_base@dear", "vgg19@deft"}) {
    const Result<GradientWorkload> workload = built_in_workload(network);
    ASSERT_TRUE(workload.ok()) << workload.error().message;
    const GradientLink link = ethernet_64();
    for (const char* policy : {"wfbp", "threshold", "optimal", "dear", "split_optimal:free"}) {
      const GradientPlan plan = plan_of(parse_gradient_policy(policy).value(), workload.value(), link);
      const VirtualRun run = VirtualStep(plan, workload.value(), link, true).run(3);
      const double predicted = iteration_s(plan, workload.value(), link);
      EXPECT_NEAR(run.ends_s[2] - run.ends_s[1], predicted, 1e-9 * predicted) << network << " " << policy;
    }
  }
}

// ---- order

struct Recorded {
  std::vector<StepMachine::Issue> issued;
  std::vector<uint64_t> results;  // by tensor
};

// Gradients become ready in a random order, messages complete at random times, and the next step's gradients follow as
// soon as a tensor's result is there.
Recorded shuffled(const StepMessages& list, Rng& rng, uint64_t steps, bool gathers_wait) {
  StepMachine machine(list, gathers_wait);
  Recorded recorded;
  recorded.results.resize(list.tensors);
  std::vector<uint64_t> ready(list.tensors);
  for (uint64_t event = 0; !machine.finished(steps); ++event) {
    EXPECT_LT(event, 1'000'000U) << "it stands still";
    if (event == 1'000'000U) break;
    while (const auto issue = machine.next()) recorded.issued.push_back(*issue);
    if (!machine.idle() && rng.below(2) == 0) {
      const StepMachine::Issue done = machine.oldest();
      machine.complete();
      for (const uint32_t tensor : list.messages[done.message].results) recorded.results[tensor] = done.step + 1;
      continue;
    }
    const auto tensor = static_cast<uint32_t>(rng.below(list.tensors));
    const uint64_t step = *std::min_element(ready.begin(), ready.end());
    if (step >= steps) machine.forward_at(steps, tensor);
    if (step >= steps || ready[tensor] > step) continue;
    // The program waits for its result before it overwrites the gradient, and so comes to it in the forward pass.
    if (step > 0) machine.forward_at(step, tensor);
    if (list.waits[tensor] && recorded.results[tensor] < step) continue;
    ++ready[tensor];
    machine.ready(tensor);
  }
  return recorded;
}

TEST(StepMachine, IssuesInTheOrderOfThePlanWhateverTheOrderOfEvents) {
  Rng rng(13);
  const std::vector<ChosenPolicy> all = policies_to_try();
  for (int round = 0; round < 400; ++round) {
    const GradientWorkload workload = dyadic_workload(rng, 20);
    const GradientLink link = dyadic_link(rng);
    const ChosenPolicy& chosen = all[round % all.size()];
    const StepMessages list = step_messages(plan_of(chosen, workload, link), workload);
    SCOPED_TRACE(chosen.text + ", round " + std::to_string(round));
    const Recorded recorded = shuffled(list, rng, 5, round % 2 == 0);
    ASSERT_EQ(recorded.issued.size(), 5 * list.messages.size());
    for (size_t i = 0; i < recorded.issued.size(); ++i) {
      ASSERT_EQ(recorded.issued[i].message, i % list.messages.size());
      ASSERT_EQ(recorded.issued[i].step, i / list.messages.size());
    }
    for (uint32_t i = 0; i < list.tensors; ++i) {
      ASSERT_EQ(recorded.results[i], list.waits[i] ? 5U : 0U) << "tensor " << i;
      ASSERT_TRUE(list.waits[i] || workload.tensors[i].bytes == 0);
    }
  }
}

// Every byte of every tensor is in exactly one all-reduce, or in one reduce-scatter and one all-gather.
TEST(StepMachine, EveryTensorTravelsOnce) {
  Rng rng(14);
  const std::vector<ChosenPolicy> all = policies_to_try();
  for (int round = 0; round < 400; ++round) {
    const GradientWorkload workload = dyadic_workload(rng, 20);
    const GradientLink link = dyadic_link(rng);
    const ChosenPolicy& chosen = all[round % all.size()];
    const StepMessages list = step_messages(plan_of(chosen, workload, link), workload);
    SCOPED_TRACE(chosen.text + ", round " + std::to_string(round));
    std::map<std::pair<uint32_t, MessageKind>, uint64_t> parts;
    for (const StepMessage& message : list.messages) {
      for (const TensorParts& piece : message.pieces) {
        uint64_t& next = parts[{piece.tensor, message.kind}];
        ASSERT_EQ(piece.first_part, next);
        next = piece.end_part;
        if (next == piece.parts) next = UINT64_MAX;
      }
    }
    for (uint32_t i = 0; i < list.tensors; ++i) {
      const auto whole = [&](MessageKind kind) { return parts.contains({i, kind}) && parts[{i, kind}] == UINT64_MAX; };
      const bool halves = whole(MessageKind::kReduceScatter) && whole(MessageKind::kAllGather);
      const bool sent = workload.tensors[i].bytes > 0;
      ASSERT_EQ(whole(MessageKind::kAllReduce) + halves, sent ? 1 : 0) << "tensor " << i;
    }
  }
}

// An update comes between the halves, so all-gathers must not be issued before the reduce-scatters are complete.
TEST(StepMachine, GathersWaitForScattersIfTheyMust) {
  const GradientWorkload workload = workload_from({4, 4}, {1, 1}, {1, 1});
  const GradientPlan plan = plan_of(parse_gradient_policy("dear:4").value(), workload, {{1, 0}, {1, 0}, {1, 0}});
  const StepMessages list = step_messages(plan, workload);
  ASSERT_EQ(list.scatters, 2U);
  StepMachine machine(list, true);
  machine.ready(0);
  EXPECT_FALSE(machine.next().has_value()) << "tensor 1 comes first, also if tensor 0 is ready first";
  machine.ready(1);
  EXPECT_EQ(machine.next()->message, 0U);
  EXPECT_EQ(machine.next()->message, 1U);
  EXPECT_FALSE(machine.next().has_value());
  machine.complete();
  EXPECT_FALSE(machine.next().has_value());
  machine.complete();
  EXPECT_EQ(machine.next()->message, 2U);
  EXPECT_EQ(machine.next()->message, 3U);
  EXPECT_FALSE(machine.next().has_value());
}

TEST(StepMachine, ALateGatherWaitsForTheForwardPass) {
  const GradientWorkload workload = workload_from({4, 4, 4}, {1, 1, 1}, {1, 1, 1});
  const GradientPlan plan =
      plan_of(parse_gradient_policy("dear:4:lookahead").value(), workload, {{1, 0}, {1, 0}, {1, 0}});
  const StepMessages list = step_messages(plan, workload);
  StepMachine machine(list, false);
  for (const uint32_t tensor : {2, 1, 0}) machine.ready(tensor);
  for (uint32_t m = 0; m < 4; ++m) EXPECT_EQ(machine.next()->message, m);
  EXPECT_FALSE(machine.next().has_value());
  machine.forward_at(0, 2);
  EXPECT_FALSE(machine.next().has_value()) << "that was the forward pass before the step";
  machine.forward_at(1, 0);
  EXPECT_EQ(machine.next()->message, 4U);
  EXPECT_FALSE(machine.next().has_value());
  machine.ready(2);  // the forward pass went by without a wait
  EXPECT_EQ(machine.next()->message, 5U);
}

TEST(StepMachine, WithoutBytesNothingIsSent) {
  const GradientWorkload workload = workload_from({0, 0}, {1, 1}, {1, 1});
  for (const ChosenPolicy& chosen : allowed_policies(kLibertyNone)) {
    const StepMessages list = step_messages(plan_of(chosen, workload, {{1, 1}, {1, 1}, {1, 1}}), workload);
    EXPECT_TRUE(list.messages.empty()) << chosen.text;
    StepMachine machine(list, true);
    EXPECT_TRUE(machine.finished(0));
    EXPECT_FALSE(machine.finished(1));
    machine.ready(0);
    machine.ready(1);
    EXPECT_FALSE(machine.next().has_value());
    EXPECT_TRUE(machine.finished(1)) << chosen.text;
  }
}

}  // namespace
}  // namespace step_machine_test
}  // namespace trestle
