// train_step_perf without ranks: its command line, the workload that it replays, the comparison of gradients, and what
// it prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gradient/policy/policy.h"
#include "perf/train_step/arguments.h"
#include "perf/train_step/gradients.h"
#include "perf/train_step/report.h"
#include "perf/train_step/workload.h"

namespace trestle::perf {
namespace {

ParsedTrainStep parse(const std::vector<std::string>& words) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv = {const_cast<char*>("train_step_perf")};
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_train_step(static_cast<int>(argv.size()) - 1, argv.data());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Without tensors of equal sizes; one has no elements.
GradientWorkload four_tensors() {
  return {{{"a", 40, 0.001, 0.002}, {"b", 0, 0, 0.001}, {"c", 4, 0.002, 0}, {"d", 256, 0.001, 0.003}}};
}

// ---- the command line

TEST(TrainStepArguments, AreUnderstood) {
  using A = TrainStepArguments;
  const uint32_t both = kLibertyStale | kLibertyCompress;
  EXPECT_EQ(parse({"--allow", "stale,compression", "--policy", "topk:0.1,topk:hidden"}).arguments.allow, both);
  const struct {
    std::vector<std::string> words;
    bool (*holds)(const A& a);
  } kCases[] = {
      {{}, [](const A& a) { return a.workload == "resnet50@dear" && a.policies.size() == 5 && a.apart; }},
      {{}, [](const A& a) { return a.check == 0 && !a.cost && a.allow == 0; }},
      {{"--workload", "vgg19@deft"}, [](const A& a) { return a.workload == "vgg19@deft"; }},
      {{"--scale-bytes=0.25", "--balance", "1.5"},
       [](const A& a) { return a.scale_bytes == 0.25 && a.balance == 1.5; }},
      {{"--policy", "wfbp,dear:1M:lookahead"},
       [](const A& a) {
         return a.policies == std::vector<std::string>{"wfbp", "dear:1M:lookahead"};
       }},
      {{"--allow", "stale"}, [](const A& a) { return a.allow == uint32_t{kLibertyStale}; }},
      {{"--allow", "compression"}, [](const A& a) { return a.allow == uint32_t{kLibertyCompress}; }},
      {{"--cost", "1e-3,2e-9", "--cost-half", "5e-4,1e-9"},
       [](const A& a) {
         return a.cost == MessageCost{1e-3, 2e-9} && a.cost_half == MessageCost{5e-4, 1e-9};
       }},
      {{"--steps", "7", "--warmup", "2", "--rounds", "9"},
       [](const A& a) { return a.steps == 7 && a.warmup == 2 && a.rounds == 9; }},
      {{"--check", "1", "--spoil", "3"}, [](const A& a) { return a.check == 1 && a.spoil == 3; }},
      {{"--memory", "together", "--bind", "none"}, [](const A& a) { return !a.apart && !a.bind; }},
      {{"-P", "4", "-t", "2", "-T", "60"},
       [](const A& a) { return a.processes == 4 && a.threads == 2 && a.timeout_s == 60; }},
      {{"--json", "--compact"}, [](const A& a) { return a.json && a.compact; }},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const ParsedTrainStep parsed = parse(kCases[i].words);
    EXPECT_EQ(parsed.error, "") << i;
    EXPECT_TRUE(kCases[i].holds(parsed.arguments)) << "row " << i;
  }
}

TEST(TrainStepArguments, AreRefusedWithASentence) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--policy", "fastest"}, "--policy 'fastest' is not a policy; there are naive, wfbp"},
      {{"--policy", "nearby:0"}, "--policy nearby:0: 0 is not from 1"},
      {{"--policy", ""}, "--policy names no policy"},
      {{"--workload", ""}, "--workload names nothing"},
      {{"--compute", "1"}, "--compute takes forward,backward in seconds, not '1'"},
      {{"--scale-bytes", "0"}, "--scale-bytes takes a number above 0, not '0'"},
      {{"--scale-time", "-1"}, "--scale-time takes a number above 0, not '-1'"},
      {{"--balance", "nan"}, "--balance takes a number above 0, not 'nan'"},
      {{"--cost", "1e-3"}, "--cost takes startup,per_byte in seconds"},
      {{"--cost", "1e-3,-1"}, "--cost takes startup,per_byte in seconds"},
      {{"--cost-half", "1,1"}, "--cost-half goes with --cost"},
      {{"--steps", "0"}, "--steps takes a whole number from 1 up, not '0'"},
      {{"--warmup", "0"}, "--warmup takes a whole number from 1 up, not '0'"},
      {{"--rounds", "two"}, "--rounds takes a whole number from 1 up, not 'two'"},
      {{"--check", "2"}, "--check takes 0 or 1, not '2'"},
      {{"--spoil", "1"}, "--spoil needs --check 1"},
      {{"--memory", "far"}, "--memory takes apart or together, not 'far'"},
      {{"--policy", "topk:2"}, "--policy topk:2: "},
      {{"--policy", "topk:0"}, "--policy topk:0: "},
      {{"--policy", "topk:largest"}, "--policy topk:largest: "},
      {{"--allow", "all"}, "--allow 'all' is not a liberty; there are stale, compression"},
      {{"--allow", "stale,"}, "--allow '' is not a liberty; there are stale, compression"},
      {{"--allow", ""}, "--allow names no liberty; there are stale and compression"},
      {{"--balance", "1", "--scale-time", "2"}, "give one of them"},
      {{"--steps"}, "--steps needs a value"},
      {{"--quick"}, "there is no flag '--quick'"},
      {{"wfbp"}, "unexpected argument 'wfbp'"},
  };
  for (const auto& [words, sentence] : wrong) {
    const std::string error = parse(words).error;
    EXPECT_TRUE(has(error, sentence)) << words[0] << ": " << error;
  }
}

// ---- the workload

TEST(TrainStepWorkload, IsScaledInWholeElements) {
  TrainStepArguments arguments;
  arguments.workload = "resnet50@dear";
  const GradientWorkload whole = replayed_workload(arguments).value();
  arguments.scale_bytes = 0.001;
  arguments.scale_time = 0.5;
  const GradientWorkload small = replayed_workload(arguments).value();
  ASSERT_EQ(small.tensors.size(), whole.tensors.size());
  for (size_t i = 0; i < small.tensors.size(); ++i) {
    EXPECT_GE(small.tensors[i].bytes, 4u);
    EXPECT_EQ(small.tensors[i].bytes % 4, 0u);
    EXPECT_LE(small.tensors[i].bytes, whole.tensors[i].bytes);
  }
  EXPECT_DOUBLE_EQ(small.forward_s(), whole.forward_s() / 2);
}

TEST(TrainStepWorkload, IsRefusedWithASentence) {
  const auto error = [](auto change) {
    TrainStepArguments arguments;
    change(arguments);
    const auto workload = replayed_workload(arguments);
    return workload.ok() ? "" : workload.error().message;
  };
  EXPECT_TRUE(has(error([](auto& a) { a.workload = "alexnet"; }), "--workload: alexnet has no compute time"));
  EXPECT_TRUE(has(error([](auto& a) { a.workload = "nothing.json"; }), "nothing.json"));
  EXPECT_TRUE(has(error([](auto& a) { a.compute = "1,2"; }), "--compute: 'resnet50@dear' is not a built-in network"));
  EXPECT_TRUE(has(error([](auto& a) { a.scale_bytes = 1e9; }), "--scale-bytes makes more"));
  EXPECT_EQ(error([](auto& a) {
              a.workload = "alexnet";
              a.compute = "0.1,0.2";
              a.balance = 1;
            }),
            "");
  EXPECT_TRUE(has(error([](auto& a) {
                    a.workload = "alexnet";
                    a.compute = "0,0";
                    a.balance = 1;
                  }),
                  "--balance scales compute times"));
}

// ---- gradients

// What two ranks bring back, as an all-reduce would make it.
void expect_sum(StepGradients& mine, const StepGradients& other) {
  for (uint64_t variant = 0; variant < StepGradients::kVariants; ++variant) {
    for (size_t i = 0; i < mine.elements(); ++i)
      mine.expected(variant)[i] = mine.contributed(variant)[i] + other.contributed(variant)[i];
  }
}

void bring_back(StepGradients& mine, uint64_t step) {
  for (uint32_t i = 0; i < 4; ++i) {
    const float* const sum = mine.expected(step % StepGradients::kVariants) + (mine.tensor(i) - mine.tensor(0));
    std::copy_n(sum, mine.count(i), mine.tensor(i));
  }
}

class Gradients : public testing::Test {
 protected:
  Gradients() { expect_sum(mine_, other_); }
  uint64_t wrong(uint64_t step) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 4; ++i) sum += mine_.compare(i, step);
    return sum;
  }

  const GradientWorkload workload_ = four_tensors();
  StepGradients mine_{workload_, true, true, 0}, other_{workload_, true, true, 1};
};

TEST_F(Gradients, ThatAreRightAreFoundRight) {
  for (uint64_t step = 0; step < 4; ++step) {
    bring_back(mine_, step);
    EXPECT_EQ(wrong(step), 0u);
  }
  EXPECT_FALSE(mine_.first());
}

TEST_F(Gradients, ThatAreWrongAreFoundAndNamed) {
  bring_back(mine_, 0);
  mine_.tensor(3)[7] += 1;
  mine_.tensor(3)[8] = -mine_.tensor(3)[8];
  EXPECT_EQ(wrong(0), 2u);
  ASSERT_TRUE(mine_.first());
  EXPECT_EQ(mine_.first()->tensor, 3u);
  EXPECT_EQ(mine_.first()->element, 7u);
  EXPECT_EQ(mine_.first()->got, mine_.first()->expected + 1);
  EXPECT_EQ(wrong_text({3, 7, 12, 13}, workload_), "tensor 3 (d), element 7: 12 instead of 13");
}

TEST_F(Gradients, OfTheStepBeforeOrOfOneRankAloneAreWrong) {
  constexpr uint64_t kAll = 10 + 1 + 64;
  bring_back(mine_, 0);
  EXPECT_EQ(wrong(1), kAll);
  for (uint32_t i = 0; i < 4; ++i) mine_.fill(i, 0);
  // Rank 1 adds 1 to each of rank 0's values and more, and no value of rank 1 is zero.
  EXPECT_EQ(wrong(0), kAll);
}

TEST_F(Gradients, LieAsAskedFor) {
  StepGradients together(workload_, false, false, 0);
  EXPECT_EQ(together.tensor(0) + 10, together.tensor(1));
  EXPECT_EQ(together.tensor(1), together.tensor(2));
  EXPECT_EQ(together.tensor(2) + 1, together.tensor(3));
  EXPECT_GT(mine_.tensor(1), mine_.tensor(0) + 10);
  EXPECT_GT(mine_.tensor(3), mine_.tensor(2) + 1);
}

// ---- the report

struct Reported {
  TrainStepArguments arguments;
  GradientWorkload workload = four_tensors();
  TrainStepReport report{arguments, workload, 4, 0.005, {}};

  Reported() {
    PolicyOutcome& done = report.policies.emplace_back();
    done.policy = "auto";
    done.chosen = "dear:1M";
    done.simulated_s = 0.020;
    done.simulated_exposed_s = 0.010;
    done.iteration_s = {0.021, 0.030, 0.022};
    done.messages = 8;
    done.copied_bytes = 600;
    done.ready_ns = {100, 200, 300};
    PolicyOutcome& refused = report.policies.emplace_back();
    refused.policy = "deft";
    refused.refused = "GradPlan: deft is \"not\" allowed";
  }
};

TEST(TrainStepReport, HasMediansAndRatios) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
  Reported reported;
  const TrainStepReport& report = reported.report;
  EXPECT_DOUBLE_EQ(exposed_s(report, report.policies[0]), 0.022 - 0.010);
  const std::vector<std::string> lines = table_lines(report);
  ASSERT_EQ(lines.size(), 4u);
  for (const char* part : {"auto ", " 22.000", " 21.000", " 30.000", " 20.000", " 1.100", " 12.000", " 10.000", " 8.0",
                           " 200 ", " 300 ", " N/A", "  dear:1M"}) {
    EXPECT_TRUE(has(lines[2], part)) << part << " in " << lines[2];
  }
  EXPECT_TRUE(has(lines[3], "not carried out: GradPlan: deft"));
  EXPECT_TRUE(has(beginning_lines(report)[1], "takes 5.000 ms, 0.500 of the compute time"));
}

}  // namespace
}  // namespace trestle::perf
