// Delayed updates: every gradient is in one result, of the steps that the scheduler tells, with the exact sum over
// ranks and steps; on one link and on several; with an update function and without; and nothing is left behind a drain.
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "conformance/gradient/delayed_trainer.h"

namespace gradients {
namespace gradient_delayed_test {
namespace {

using ranks::Settings;
using ranks::succeeded;

const std::vector<Tensor> kMixed = {{1000}, {0}, {7}, {3000}, {1}, {500, trestleInt32}, {900, trestleFloat64}, {4097}};

TEST(GradientDelayed, EveryGradientIsInOneResult) {
  for (const Settings& settings :
       {Settings{.ranks = 1}, Settings{.ranks = 2, .transport = "loopback"}, Settings{.ranks = 3, .transport = "shm"},
        Settings{.ranks = 3, .transport = "tcp"}, Settings{.ranks = 4, .dims = "2x2", .transport = "shm,tcp"}}) {
    for (const Memory memory : {Memory::kTogether, Memory::kApart, Memory::kMoving}) {
      SCOPED_TRACE(testing::Message() << settings << ", memory " << static_cast<int>(memory));
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        DelayedTrainer trainer({comm}, rank, kMixed, memory);
        for (const char* policy : {"deft:1", "deft:8K", "deft"}) {
          SCOPED_TRACE(policy);
          trainer.plan(policy);
          trainer.train(14);
          trainer.drain();
          trainer.train(5);
          trainer.drain();
          trainer.drain();
        }
        trainer.expect_all_counted();
      });
    }
  }
}

// Nothing is pending behind any number of steps and a drain, and the steps behind it are the first ones again.
TEST(GradientDelayed, ADrainMayComeAtAnyTime) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    DelayedTrainer trainer({comm}, rank, {{100}, {2000}, {300}, {5000}}, Memory::kApart, 8);
    trainer.plan("deft:4K");
    std::vector<int> batches;
    for (size_t steps = 0; steps <= 9; ++steps) {
      const std::vector<int> these = trainer.train(steps);
      for (size_t i = 0; i < std::min(these.size(), batches.size()); ++i) EXPECT_EQ(these[i], batches[i]);
      batches = these;
      trainer.drain();
    }
    trainer.expect_all_counted();
  });
}

TEST(GradientDelayed, OnTwoLinksAtOnce) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const double ratio : {1.0, 1.65}) {
      SCOPED_TRACE(testing::Message() << transport << ", ratio " << ratio);
      ranks::on_threads({.ranks = 3, .transport = transport}, [&](int rank, trestleComm_t comm) {
        trestleComm_t second = nullptr;
        ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &second, nullptr), comm));
        {
          DelayedTrainer trainer({comm, second}, rank, kMixed, Memory::kApart, 2);
          const double ratios[] = {1, ratio};
          ASSERT_TRUE(succeeded(trestleGradSetLinkRatios(trainer.grad(), ratios, 2)));
          trainer.plan("deft:1");
          const double with_two = updates_per_iteration(trainer.grad());
          const trestleCommStats_t before = stats_of(second);
          trainer.train(20);
          trainer.drain();
          EXPECT_GT(stats_of(second).total.started, before.total.started + 10) << "the second link carries nothing";
          // The second link makes updates more frequent.
          DelayedTrainer alone({comm}, rank, kMixed, Memory::kApart, 2);
          alone.plan("deft:1");
          EXPECT_LT(updates_per_iteration(alone.grad()), with_two);
        }
        EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
      });
    }
  }
}

// Policies that delay nothing use the first of several links.
TEST(GradientDelayed, OtherPoliciesUseTheFirstLink) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleComm_t second = nullptr;
    ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &second, nullptr), comm));
    {
      DelayedTrainer trainer({comm, second}, rank, kMixed, Memory::kApart);
      for (const char* policy : {"wfbp", "split_optimal", "deft:1"}) {
        SCOPED_TRACE(policy);
        trainer.plan(policy);
        const bool delayed = policy == std::string("deft:1");
        for (const int batches : trainer.train(3)) EXPECT_TRUE(delayed || batches == 1);
        EXPECT_EQ(trainer.drain() > 0, delayed);
      }
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
  });
}

// ---- updates

struct Updates {
  std::map<int, std::vector<std::pair<int, int>>> of;  // by tensor: batches and age
  static void apply(void* context, int tensor, size_t offset, size_t count, const void* gradient, void* parameter,
                    int batches, int age) {
    EXPECT_EQ(offset, 0u);
    static_cast<Updates*>(context)->of[tensor].emplace_back(batches, age);
    for (size_t i = 0; i < count; ++i) static_cast<float*>(parameter)[i] += static_cast<const float*>(gradient)[i];
  }
  static void plain(void*, int, size_t, size_t count, const void* gradient, void* parameter) {
    for (size_t i = 0; i < count; ++i) static_cast<float*>(parameter)[i] += static_cast<const float*>(gradient)[i];
  }
};

TEST(GradientDelayed, UpdateFunctionsGetEveryGradientOnce) {
  for (const bool told : {true, false}) {
    ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      Updates updates;
      trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
      config.allow = trestleGradAllowStale;
      if (told) {
        config.updateMerged = Updates::apply;
      } else {
        config.update = Updates::plain;
      }
      config.updateContext = &updates;
      trestleGrad_t grad = make({comm}, config);
      Model model({{1000}, {0}, {30'000}, {64}}, Memory::kApart, rank, Numbers::kWhole);
      model.register_in(grad, true);
      set_delayed_times(grad, model.tensors(), 3);
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft:1")));
      int applied = 0;
      for (uint64_t step = 1; step <= 17; ++step) {
        model.step(grad, step, step + static_cast<uint64_t>(rank));
        int batches = -1;
        ASSERT_TRUE(succeeded(trestleGradBatches(grad, 3, &batches, nullptr)));
        applied += batches;
        EXPECT_EQ(model.compare_parameters(model.whole_sums(3, 1, static_cast<uint64_t>(applied))), "") << step;
      }
      int rest = 0;
      ASSERT_TRUE(succeeded(trestleGradDrain(grad, &rest)));
      EXPECT_EQ(applied + rest, 17);
      EXPECT_EQ(model.compare_parameters(model.whole_sums(3, 1, 17)), "");
      for (const auto& [tensor, calls] : updates.of) {
        int sum = 0;
        for (const auto& [batches, age] : calls) {
          EXPECT_GE(batches, 1);
          EXPECT_GE(age, batches - 1);
          sum += batches;
        }
        EXPECT_EQ(sum, 17) << "tensor " << tensor;
      }
      EXPECT_EQ(updates.of.size(), told ? 3u : 0u) << "not for the tensor without elements";
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

TEST(GradientDelayed, MeansAreOverTheRanks) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.allow = trestleGradAllowStale;
    config.op = trestleAvg;
    trestleGrad_t grad = make({comm}, config);
    float gradient = 0;
    int tensor = 0, batches = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "w", 1, trestleFloat32, &gradient, nullptr, &tensor)));
    set_delayed_times(grad, 1, 1);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft")));
    float sum = 0;
    for (int step = 1; step <= 6; ++step) {
      gradient = static_cast<float>(step * (rank == 0 ? 2 : 4));
      ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, 0)));
      sum += gradient;
    }
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_GT(batches, 0);
    EXPECT_EQ(sum + gradient, 3 * 21.0f);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// Updates are in place then, so the next step may begin.
TEST(GradientDelayed, ADrainWithUpdatesIsAWait) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.allow = trestleGradAllowStale;
    config.update = [](void*, int, size_t, size_t, const void*, void*) {};
    trestleGrad_t grad = make({comm}, config);
    float gradient = 1, parameter = 0;
    int tensor = 0, batches = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "w", 1, trestleFloat32, &gradient, &parameter, &tensor)));
    set_delayed_times(grad, 1, 1);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft")));
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientDelayed, CountsWhatIsNotANumberOnce) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.allow = trestleGradAllowStale;
    config.countNans = 1;
    trestleGrad_t grad = make({comm}, config);
    Model model({{100}, {200}}, Memory::kApart, rank, Numbers::kWhole);
    model.register_in(grad);
    set_delayed_times(grad, model.tensors(), 1);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft:1")));
    for (uint64_t step = 1; step <= 5; ++step) {
      model.fill(step);
      const uint32_t nan = 0x7fc00000;
      if (rank == 1 && step == 2) std::memcpy(model.gradient(1) + 12, &nan, sizeof nan);
      model.make_ready(grad, step);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    }
    const trestleGradStats_t stats = stats_of(grad);
    EXPECT_EQ(stats.nans, rank == 1 ? 1u : 0u);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// Auto delays where the communication is longer than the compute, and only if it may.
TEST(GradientDelayed, AutoDelaysWhereItPays) {
  for (const unsigned allow : {unsigned{trestleGradAllowNone}, unsigned{trestleGradAllowStale}}) {
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      DelayedTrainer trainer({comm}, rank, {{1000}, {2000}, {3000}}, Memory::kApart, 3, allow);
      trainer.plan("auto");
      const bool delays = plan_json(trainer.grad()).find("\"policy\":\"deft") != std::string::npos;
      EXPECT_EQ(delays, allow == trestleGradAllowStale);
      trainer.train(7);
      trainer.drain();
    });
  }
}

// Steps are measured on two links, planned by that, and trained.
TEST(GradientDelayed, PlansByMeasuredTimesOfTwoLinks) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleComm_t second = nullptr;
    ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &second, nullptr), comm));
    {
      DelayedTrainer trainer({comm, second}, rank, {{1000}, {20'000}, {300}}, Memory::kTogether);
      for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(succeeded(trestleGradProfileBegin(trainer.grad())));
        trainer.measure(2);
        ASSERT_TRUE(succeeded(trestleGradProfileEnd(trainer.grad()), comm));
        trainer.drain();
        trainer.plan("deft:8K");
        trainer.train(8);
      }
      trainer.drain();
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
  });
}

// What is pending is dropped. No rank waits for another one.
TEST(GradientDelayed, ASchedulerMayEndWithPendingGradients) {
  for (const size_t steps : {0, 1, 2, 5}) {
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      { DelayedTrainer trainer({comm}, rank, kMixed, Memory::kApart); }
      DelayedTrainer trainer({comm}, rank, kMixed, Memory::kApart);
      trainer.plan("deft:1");
      trainer.train(steps);
    });
  }
}

// Gradients of the next step while the last one's result of another tensor is still under way, from several threads.
TEST(GradientDelayed, GradientsOfManyThreads) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    DelayedTrainer trainer({comm}, rank, std::vector<Tensor>(24, Tensor{333}), Memory::kApart);
    trainer.plan("deft:4K");
    trainer.train(12, 4);
    trainer.drain();
    trainer.expect_all_counted();
  });
}

}  // namespace
}  // namespace gradient_delayed_test
}  // namespace gradients
