#include "conformance/gradient/delayed_trainer.h"

#include <algorithm>
#include <thread>

namespace gradients {

using ranks::succeeded;

void set_delayed_times(trestleGrad_t grad, int tensors, double ratio) {
  const std::vector<double> times(static_cast<size_t>(tensors), 1e-3);
  const trestleGradCost_t whole{2e-3 * ratio, 1e-10}, half{1e-3 * ratio, 5e-11};
  ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
}

double updates_per_iteration(trestleGrad_t grad) {
  const std::string json = plan_json(grad);
  const std::string name = "\"updates_per_iteration\":";
  return std::stod(json.substr(json.find(name) + name.size()));
}

trestleCommStats_t stats_of(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(succeeded(trestleCommGetStats(comm, &stats)));
  return stats;
}

DelayedTrainer::DelayedTrainer(const std::vector<trestleComm_t>& comms, int rank, std::vector<Tensor> tensors,
                               Memory memory, double ratio, unsigned allow)
    : rank_(rank), model_(std::move(tensors), memory, rank, Numbers::kWhole) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.allow = allow;
  EXPECT_TRUE(succeeded(trestleGradCreate(&grad_, comms.data(), static_cast<int>(comms.size()), &config)));
  EXPECT_TRUE(succeeded(trestleCommCount(comms.front(), &ranks_)));
  model_.register_in(grad_);
  set_delayed_times(grad_, model_.tensors(), ratio);
}

DelayedTrainer::~DelayedTrainer() {
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad_)));
}

void DelayedTrainer::plan(const char* policy) {
  ASSERT_TRUE(succeeded(trestleGradPlan(grad_, policy)));
  planned_ = true;
  delays_ = plan_json(grad_).find("\"policy\":\"deft") != std::string::npos;
}

void DelayedTrainer::make_ready(int threads) {
  if (threads == 1) return model_.make_ready(grad_, step_ * 31 + static_cast<uint64_t>(rank_));
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([this, t, threads] {
      for (int i = t; i < model_.tensors(); i += threads)
        EXPECT_TRUE(succeeded(trestleGradReady(grad_, i, model_.given(static_cast<size_t>(i)))));
    });
  }
  for (std::thread& thread : all) thread.join();
}

std::vector<int> DelayedTrainer::train(size_t steps, int threads) {
  std::vector<int> batches;
  for (size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    ++step_;
    model_.fill(step_);
    make_ready(threads);
    EXPECT_TRUE(succeeded(trestleGradStepEnd(grad_)));
    if (step_ % 2 == 0) {
      EXPECT_TRUE(succeeded(trestleGradSynchronize(grad_)));
    }
    for (int t = 0; t < model_.tensors(); ++t) EXPECT_TRUE(succeeded(trestleGradWaitParam(grad_, t)));
    batches.push_back(check_result());
  }
  return batches;
}

void DelayedTrainer::measure(size_t steps) {
  for (size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    for (int t = 0; t < model_.tensors(); ++t) {
      EXPECT_TRUE(succeeded(trestleGradWaitParam(grad_, t)));
      ranks::spin(100'000);
    }
    ++step_;
    model_.fill(step_);
    for (int t = model_.tensors(); t-- > 0;) {
      ranks::spin(100'000);
      EXPECT_TRUE(succeeded(trestleGradReady(grad_, t, model_.given(static_cast<size_t>(t)))));
    }
    EXPECT_TRUE(succeeded(trestleGradStepEnd(grad_)));
    for (int t = 0; t < model_.tensors(); ++t) EXPECT_TRUE(succeeded(trestleGradWaitParam(grad_, t)));
    if (planned_) {
      check_result();
    } else {
      given_ = step_;  // nothing was added
    }
  }
}

int DelayedTrainer::check_result() {
  int batches = -1, age = -1;
  EXPECT_TRUE(succeeded(trestleGradBatches(grad_, 0, &batches, &age)));
  for (int t = 1; t < model_.tensors(); ++t) {
    int other = -1, other_age = -1;
    EXPECT_TRUE(succeeded(trestleGradBatches(grad_, t, &other, &other_age)));
    EXPECT_EQ(other, batches) << "tensor " << t;
    EXPECT_EQ(other_age, age) << "tensor " << t;
  }
  const auto count = static_cast<uint64_t>(batches);
  EXPECT_EQ(model_.compare(model_.whole_sums(ranks_, given_ + 1, given_ + count), true), "")
      << "step " << step_ << ", batches " << batches;
  EXPECT_EQ(static_cast<uint64_t>(age), count == 0 ? 0 : step_ - given_ - 1);
  for (uint64_t step = given_ + 1; step <= given_ + count && delays_; ++step) ages_ += step_ - step;
  if (delays_ && count > 0) {
    ++results_;
    oldest_ = std::max(oldest_, static_cast<uint64_t>(age));
  }
  given_ += count;
  return batches;
}

int DelayedTrainer::drain() {
  int batches = -1;
  EXPECT_TRUE(succeeded(trestleGradDrain(grad_, &batches)));
  if (batches <= 0) {
    EXPECT_EQ(batches, 0);
    EXPECT_EQ(given_, step_) << "gradients are pending, and the drain brings none";
    return batches;
  }
  EXPECT_EQ(check_result(), batches);
  EXPECT_EQ(given_, step_) << "gradients are pending behind a drain";
  return batches;
}

void DelayedTrainer::expect_all_counted() {
  const trestleGradStats_t stats = stats_of(grad_);
  EXPECT_EQ(stats.steps, step_);
  EXPECT_EQ(stats.delayedUpdates, results_);
  EXPECT_EQ(stats.delayedBatches + stats.pendingBatches, step_);
  EXPECT_EQ(stats.pendingBatches, step_ - given_);
  EXPECT_EQ(stats.ageSum, ages_);
  EXPECT_EQ(stats.oldestAge, oldest_);
}

}  // namespace gradients
