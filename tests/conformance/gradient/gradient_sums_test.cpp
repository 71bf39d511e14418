// Every policy adds every gradient once per step, whatever the order in which gradients become ready on each rank: the
// sums are those of the program's own collectives, bit by bit where these have the same buffers.
#include <cmath>
#include <cstring>
#include <iterator>
#include <thread>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_sums_test {
namespace {

using ranks::Settings;
using ranks::succeeded;

const std::vector<Tensor> kMixed = {{1000}, {0}, {7},  {30'000}, {1}, {500, trestleInt32}, {3}, {9000, trestleFloat64},
                                    {4097}, {0}, {64}, {2048}};

const char* const kPolicies[] = {"naive",
                                 "wfbp",
                                 "sync",
                                 "threshold:16K",
                                 "threshold",
                                 "nearby:3",
                                 "mgwfbp_paper",
                                 "optimal",
                                 "dear:16K",
                                 "dear:16K:lookahead",
                                 "dear:tuned",
                                 "split_optimal:shared",
                                 "split_optimal:free",
                                 "priority:4K",
                                 "us_byte:8K",
                                 "auto"};

struct Case {
  Settings settings;
  Memory memory = Memory::kTogether;
  std::vector<Tensor> tensors = kMixed;
  trestleRedOp_t op = trestleSum;
  size_t first_policy = 0, every = 1;  // which of kPolicies
};

// A step's results by waits in the order of the forward pass, or all at once.
void wait_for_results(trestleGrad_t grad, int tensors, bool all_at_once) {
  if (all_at_once) {
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    return;
  }
  for (int i = 0; i < tensors; ++i) ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
}

void run_policy(const Case& what, const char* policy, trestleGrad_t grad, Model& model, int rank, trestleComm_t comm,
                uint64_t& step) {
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
  const std::string json = plan_json(grad);
  const auto groups = groups_of(json, "groups");
  const auto gathers = groups_of(json, "gather_groups");
  const bool by_parts = json.find("priority") != std::string::npos || json.find("us_byte") != std::string::npos;
  const bool halves = !gathers.empty();
  const bool free_groups = halves && gathers != groups;
  for (int round = 0; round < 3; ++round) {
    ++step;
    model.fill(step);
    model.make_ready(grad, round == 0 ? 0 : step * 31 + static_cast<uint64_t>(rank));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    wait_for_results(grad, model.tensors(), round == 1);
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    const auto sums = model.sums(comm, step, groups, halves && !free_groups, what.op);
    ASSERT_EQ(model.compare(sums, !by_parts && !free_groups), "") << "round " << round;
  }
}

void train(const Case& what, int rank, trestleComm_t comm) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.op = what.op;
  trestleGrad_t grad = make({comm}, config);
  Model model(what.tensors, what.memory, rank);
  model.register_in(grad);
  set_times(grad, model.tensors());
  uint64_t step = 0, plans = 0;
  for (size_t p = what.first_policy; p < std::size(kPolicies); p += what.every) {
    SCOPED_TRACE(kPolicies[p]);
    run_policy(what, kPolicies[p], grad, model, rank, comm, step);
    ++plans;
    if (testing::Test::HasFailure()) break;
  }
  const trestleGradStats_t stats = stats_of(grad);
  EXPECT_EQ(stats.steps, step);
  EXPECT_EQ(stats.plans, plans);
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
}

// Each policy with each kind of memory, on different transports.
TEST(GradientSums, EveryPolicyOnEveryTransport) {
  size_t first = 0;
  for (const Settings& settings :
       {Settings{.ranks = 1}, Settings{.ranks = 2, .transport = "loopback"}, Settings{.ranks = 3, .transport = "shm"},
        Settings{.ranks = 3, .transport = "tcp"}, Settings{.ranks = 4, .dims = "2x2", .transport = "shm,tcp"}}) {
    for (const Memory memory : {Memory::kTogether, Memory::kApart, Memory::kMoving}) {
      SCOPED_TRACE(testing::Message() << settings << ", memory " << static_cast<int>(memory));
      const Case what{settings, memory, kMixed, trestleSum, first++ % 3, 3};
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) { train(what, rank, comm); });
    }
    ++first;
  }
}

TEST(GradientSums, MeansAndSingleTensors) {
  const Settings settings{.ranks = 3, .transport = "shm"};
  for (const std::vector<Tensor>& tensors :
       {std::vector<Tensor>{{5000}}, {{0}}, {{1}}, {{0}, {0}, {0}}, {{2}, {1}}, {{0}, {3}, {0}}}) {
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      train({settings, Memory::kApart, tensors}, rank, comm);
      train({settings, Memory::kTogether, tensors, trestleAvg}, rank, comm);
    });
  }
}

TEST(GradientSums, OnProcesses) {
  const Settings settings{.ranks = 3, .transport = "shm", .processes = true};
  ranks::on_ranks(settings, [&](int rank, trestleComm_t comm) { train({settings, Memory::kTogether}, rank, comm); });
}

// What lies together travels from where it lies.
TEST(GradientSums, CopiesOnlyWhatLiesApart) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const Memory memory : {Memory::kTogether, Memory::kApart}) {
      trestleGrad_t grad = make(comm);
      Model model({{100}, {200}, {300}}, memory, rank);
      model.register_in(grad);
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, "sync")));
      model.step(grad, 1, 0);
      const trestleGradStats_t stats = stats_of(grad);
      EXPECT_EQ(stats.messages, 1U);
      EXPECT_EQ(stats.bytes, 2400U);
      EXPECT_EQ(stats.copiedBytes, memory == Memory::kTogether ? 0U : 4800U);
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    }
  });
}

// NaNs are counted where they come from, and spread over the ranks as sums have it.
TEST(GradientSums, CountsWhatIsNotANumber) {
  for (const char* policy : {"threshold:1K", "split_optimal:free"}) {
    ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
      config.countNans = 1;
      trestleGrad_t grad = make({comm}, config);
      Model model({{100}, {200}, {300}}, Memory::kTogether, rank);
      model.register_in(grad);
      set_times(grad, model.tensors());
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
      for (uint64_t step = 1; step <= 2; ++step) {
        model.fill(step);
        const float nan = std::nanf("");
        if (rank == 1) std::memcpy(model.gradient(1) + 7 * sizeof nan, &nan, sizeof nan);
        model.make_ready(grad, step);
        ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
        ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
        float value[2];
        std::memcpy(value, model.gradient(1) + 7 * sizeof nan, sizeof value);
        EXPECT_TRUE(std::isnan(value[0]));
        EXPECT_FALSE(std::isnan(value[1]));
      }
      const trestleGradStats_t stats = stats_of(grad);
      EXPECT_EQ(stats.nans, rank == 1 ? 2U : 0U);
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

// Threads of the backward pass mark different tensors at the same time.
TEST(GradientSums, GradientsOfManyThreads) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(std::vector<Tensor>(40, Tensor{333}), Memory::kApart, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "threshold:4K")));
    const auto groups = groups_of(plan_json(grad), "groups");
    for (uint64_t step = 1; step <= 10; ++step) {
      model.fill(step);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          for (int i = t; i < model.tensors(); i += 4) EXPECT_TRUE(succeeded(trestleGradReady(grad, i, nullptr)));
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
      ASSERT_EQ(model.compare(model.sums(comm, step, groups, false), true), "");
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientSums, SeveralSchedulersAtOnce) {
  constexpr int kSchedulers = 3;
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    std::vector<trestleComm_t> comms(kSchedulers);
    for (trestleComm_t& one : comms) ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &one, nullptr), comm));
    std::vector<std::thread> threads;
    for (int s = 0; s < kSchedulers; ++s) {
      threads.emplace_back([&, s] {
        Case what;
        what.memory = static_cast<Memory>(s);
        train(what, rank, comms[static_cast<size_t>(s)]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (trestleComm_t one : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(one)));
  });
}

}  // namespace
}  // namespace gradient_sums_test
}  // namespace gradients
