// Traces of steps: which events they have, and what is refused.
#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_trace_test {
namespace {

using ranks::refused;
using ranks::succeeded;

trestleGrad_t make(trestleComm_t comm, unsigned allow = 0) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.allow = allow;
  return gradients::make({comm}, config);
}

std::string text_of(trestleResult_t (*function)(trestleGrad_t, char*, size_t*), trestleGrad_t grad) {
  size_t size = 0;
  EXPECT_TRUE(succeeded(function(grad, nullptr, &size)));
  std::string text(size, '\0');
  EXPECT_TRUE(succeeded(function(grad, text.data(), &size)));
  text.resize(size - 1);
  return text;
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Spans of a kind: each has a beginning and an end.
size_t spans(const std::string& text, const std::string& kind) {
  return count(text, "\"cat\":\"" + kind + "\"") / 2;
}

void run_steps(trestleGrad_t grad, Model& model, uint64_t steps) {
  for (uint64_t step = 1; step <= steps; ++step) {
    for (int i = 0; i < model.tensors() && step > 1; ++i) ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
    model.fill(step);
    model.make_ready(grad, step);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
  }
  ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
}

struct Case {
  const char* policy;
  size_t messages;  // of a step
};

class GradTraces : public testing::TestWithParam<Case> {};

TEST_P(GradTraces, HasEveryEventOfTheSteps) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{1000}, {7}, {3000}, {1}}, Memory::kApart, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, GetParam().policy)));
    run_steps(grad, model, 2);
    ASSERT_TRUE(succeeded(trestleGradTraceBegin(grad, 1000)));
    run_steps(grad, model, 3);
    const std::string text = text_of(trestleGradTraceJson, grad);
    EXPECT_EQ(count(text, "\"cat\":\"ready\""), 12U) << text;
    EXPECT_EQ(count(text, "\"cat\":\"step end\""), 3U);
    EXPECT_EQ(spans(text, "wait"), 8U) << "two of the steps wait";
    for (const char* kind : {"pack", "travel", "unpack"}) EXPECT_EQ(spans(text, kind), 3 * GetParam().messages) << kind;
    EXPECT_EQ(count(text, "\"rank " + std::to_string(rank) + "\""), 1U);
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

INSTANTIATE_TEST_SUITE_P(Policies, GradTraces,
                         testing::Values(Case{"wfbp", 4}, Case{"nearby:2", 2}, Case{"dear:25M", 2}));

TEST(GradTrace, HasDelayedMessages) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm, trestleGradAllowStale);
    Model model({{1000}, {7}, {3000}, {1}}, Memory::kApart, rank);
    model.register_in(grad);
    set_times(grad, model.tensors());
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft:4K")));
    ASSERT_TRUE(succeeded(trestleGradTraceBegin(grad, 1000)));
    run_steps(grad, model, 6);
    int batches = 0;
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    const std::string text = text_of(trestleGradTraceJson, grad);
    EXPECT_EQ(count(text, "\"cat\":\"ready\""), 24U);
    EXPECT_GT(spans(text, "travel"), 0U);
    EXPECT_EQ(spans(text, "travel"), spans(text, "pack"));
    EXPECT_EQ(spans(text, "drain"), batches > 0 ? 1U : 0U) << batches;
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

constexpr int kRanks = 8, kSteps = 2 * kRanks;

struct Compressed {
  const char* collective;
  double startup;  // of a message, so that FLEX's rules 5a to 5c name it
};

std::ostream& operator<<(std::ostream& out, const Compressed& one) {
  return out << one.collective;
}

// In a plan: "groups" or "gather_groups".
size_t groups(const std::string& plan, const std::string& which) {
  const size_t begin = plan.find("\"" + which + "\":[");
  return count(plan.substr(begin, plan.find("]]", begin) - begin), "[") - 1;
}

class GradTracesOfTopK : public testing::TestWithParam<Compressed> {};

// The ranks take turns to choose, but for an all-gather.
TEST_P(GradTracesOfTopK, HasEveryPartOfAMessage) {
  const Compressed by = GetParam();
  ranks::on_threads({.ranks = kRanks, .transport = "shm"}, [&by](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm, trestleGradAllowCompression);
    Model model({{1000}, {7}, {3000}, {1}}, Memory::kApart, rank);
    model.register_in(grad);
    const std::vector<double> times(4, 1e-3);
    const trestleGradCost_t half{(kRanks - 1) * by.startup, 2e-8}, whole{2 * half.startup, 2 * half.perByte};
    ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "topk:0.25")));
    const std::string plan = text_of(trestleGradPlanJson, grad);
    ASSERT_NE(plan.find("\"collective\":\"" + std::string(by.collective) + "\""), std::string::npos) << plan;
    const bool gathers = std::string(by.collective) == "all-gather";
    const size_t first = kSteps * groups(plan, "groups"), second = kSteps * groups(plan, "gather_groups");
    ASSERT_TRUE(succeeded(trestleGradTraceBegin(grad, 10000)));
    run_steps(grad, model, kSteps);
    const std::string steps = text_of(trestleGradTraceJson, grad);
    EXPECT_EQ(spans(steps, "select"), gathers ? first : first / kRanks) << steps;
    EXPECT_EQ(spans(steps, "indices"), gathers ? 0 : first);
    for (const char* kind : {"pack", "travel"}) EXPECT_EQ(spans(steps, kind), gathers ? first : first + second) << kind;
    EXPECT_EQ(spans(steps, "unpack"), first + second);
    EXPECT_EQ(spans(steps, "drain"), 0U);
    for (int step = 1; step <= kSteps; ++step) {
      EXPECT_GT(count(steps, "{\"step\":" + std::to_string(step) + ",\"message\":0"), 0U) << step;
    }
    int batches = 0;
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_EQ(batches, kSteps);
    EXPECT_EQ(spans(text_of(trestleGradTraceJson, grad), "drain"), 1U);
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_EQ(spans(text_of(trestleGradTraceJson, grad), "drain"), 1U) << "nothing was left";
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

INSTANTIATE_TEST_SUITE_P(Collectives, GradTracesOfTopK,
                         testing::Values(Compressed{"ring", 0}, Compressed{"tree", 7e-5},
                                         Compressed{"all-gather", 1e-3}));

TEST(GradTrace, KeepsSoManyEvents) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{10}, {20}}, Memory::kApart, rank);
    model.register_in(grad);
    size_t size = 0;
    EXPECT_TRUE(refused(trestleGradTraceJson(grad, nullptr, &size), trestleInvalidUsage, {"GradTraceBegin"}));
    EXPECT_TRUE(refused(trestleGradTraceJson(grad, nullptr, nullptr), trestleInvalidArgument, {"size"}));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    EXPECT_TRUE(refused(trestleGradTraceBegin(grad, (size_t{1} << 24) + 1), trestleInvalidArgument, {"at most"}));
    ASSERT_TRUE(succeeded(trestleGradTraceBegin(grad, 1)));
    run_steps(grad, model, 3);
    const size_t stamps = count(text_of(trestleGradTraceJson, grad), "\"ts\"");
    EXPECT_TRUE(stamps == 1 || stamps == 2) << "one event, of which a span has two";
    model.fill(4);
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 1, nullptr)));
    EXPECT_TRUE(refused(trestleGradTraceBegin(grad, 9), trestleInvalidUsage, {"step is under way"}));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradTraceBegin(grad, 0)));
    EXPECT_TRUE(refused(trestleGradTraceJson(grad, nullptr, &size), trestleInvalidUsage, {"nothing is traced"}));
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_trace_test
}  // namespace gradients
