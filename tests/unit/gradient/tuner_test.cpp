// The search for DeAR's buffer size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "gradient/policy/buffer_tuner.h"
#include "gradient/policy/dear.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

using Objective = std::function<double(uint32_t mib)>;

double least_of(const Objective& objective) {
  double least = objective(1);
  for (uint32_t mib = 2; mib <= kMostBufferMib; ++mib) least = std::min(least, objective(mib));
  return least;
}

// Trials until one is within 1 % of the best. Each measures with an error of 0.3 %.
uint32_t trials_needed(const Objective& objective, uint64_t seed) {
  Rng rng(seed);
  const double least = least_of(objective);
  std::vector<BufferTrial> trials;
  while (trials.size() < kMostBufferMib) {
    const uint32_t mib = next_buffer_mib(trials);
    const double exact = objective(mib);
    const double error = 0.003 * (rng.uniform() + rng.uniform() + rng.uniform() - 1.5) * 2;
    trials.push_back({mib, exact * (1 + error)});
    if (exact <= least * 1.01) break;
  }
  return static_cast<uint32_t>(trials.size());
}

double mean_trials(const Objective& objective) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) sum += trials_needed(objective, seed);
  return sum / 20;
}

TEST(BufferTuner, BeginsWith25AndTriesNothingTwice) {
  std::set<uint32_t> tried;
  std::vector<BufferTrial> trials;
  EXPECT_EQ(next_buffer_mib(trials), 25u);
  for (uint32_t i = 0; i < kMostBufferMib; ++i) {
    const uint32_t mib = next_buffer_mib(trials);
    EXPECT_EQ(next_buffer_mib(trials), mib) << "equal trials give equal choices";
    EXPECT_GE(mib, 1u);
    EXPECT_LE(mib, kMostBufferMib);
    EXPECT_TRUE(tried.insert(mib).second) << mib;
    trials.push_back({mib, 1 + 0.001 * mib});
  }
}

TEST(BufferTuner, TakesTheBestMeasuredSize) {
  const std::vector<BufferTrial> trials = {{25, 3}, {1, 2}, {7, 2}, {100, 4}};
  EXPECT_EQ(best_buffer_mib(trials), 1u);
}

TEST(BufferTuner, FindsSmoothMinimaInFewTrials) {
  for (const double minimum : {5.0, 10.0, 45.0, 60.0, 85.0}) {
    const auto objective = [minimum](uint32_t mib) {
      const double far = std::log(mib / minimum);
      return 0.25 * (1 + 0.2 * far * far);
    };
    const double mean = mean_trials(objective);
    std::printf("minimum at %g MB: %.1f trials\n", minimum, mean);
    EXPECT_LE(mean, 15) << minimum;
  }
}

TEST(BufferTuner, FindsTheBestBufferOfPapersNetworks) {
  for (const char* name : {"resnet50@dear", "densenet201@dear", "bert_base@dear"}) {
    const GradientWorkload workload = built_in_workload(name).value();
    const GradientLink link = ethernet_64();
    const auto objective = [&](uint32_t mib) {
      return iteration_s(plan_dear(workload, uint64_t{mib} << 20, GatherIssue::kEager), workload, link);
    };
    const double mean = mean_trials(objective);
    std::printf("%s: %.1f trials\n", name, mean);
    EXPECT_LE(mean, 25) << name;
    const double tuned = objective(tune_buffer(objective, kTuningTrials));
    EXPECT_LE(tuned, 1.02 * least_of(objective)) << name;
  }
}

}  // namespace
}  // namespace trestle
