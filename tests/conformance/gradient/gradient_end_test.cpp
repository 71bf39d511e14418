// The end of a scheduler, calls that one rank refuses, and limits of the process.
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace {

using ranks::refused;
using ranks::succeeded;

// parameter += gradient
void add_to_parameter(void*, int, size_t, size_t count, const void* gradient, void* parameter) {
  for (size_t i = 0; i < count; ++i) static_cast<float*>(parameter)[i] += static_cast<const float*>(gradient)[i];
}

trestleGrad_t make(trestleComm_t comm, trestleGradUpdate_t update = nullptr) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.update = update;
  trestleGrad_t grad = nullptr;
  EXPECT_TRUE(succeeded(trestleGradCreate(&grad, &comm, 1, &config)));
  return grad;
}

// A rank that destroys its scheduler behind StepEnd does its part of the step, for itself and for the others.
TEST(GradientEnd, AnEndedStepIsCompleteBehindDestroy) {
  for (const char* policy : {"wfbp", "dear:16K", "dear:16K:lookahead", "split_optimal:shared"}) {
    for (const int early : {1, 2}) {
      SCOPED_TRACE(testing::Message() << policy << ", ranks that do not synchronize: " << early);
      ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
        trestleGrad_t grad = make(comm, add_to_parameter);
        Model model({{1000}, {0}, {7}, {30'000}, {1}, {4097}}, Memory::kApart, rank);
        model.register_in(grad, true);
        set_times(grad, model.tensors());
        ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
        const std::string json = plan_json(grad);
        model.fill(1);
        model.make_ready(grad, 1);
        ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
        if (rank >= early) {
          EXPECT_TRUE(succeeded(trestleGradSynchronize(grad)));
        }
        EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
        const auto sums = model.sums(comm, 1, groups_of(json, "groups"), !groups_of(json, "gather_groups").empty());
        for (size_t i = 0; i < sums.size(); ++i) {
          const bool same = sums[i].empty() || std::memcmp(model.parameter(i), sums[i].data(), sums[i].size()) == 0;
          EXPECT_TRUE(same) << "tensor " << i;
        }
      });
    }
  }
}

// The other rank's part comes when the handle takes no calls any more. So the wait ends while Destroy waits for it.
TEST(GradientEnd, DestroyWaitsForCallsOfOtherThreads) {
  ranks::Job job{.ranks = 2};
  job.body = [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
    trestleGrad_t grad = make(comm);
    Model model({{1000}, {2000}}, Memory::kTogether, process.rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    model.fill(1);
    if (process.rank == 0) {
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      std::atomic<int> waiting{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
          ++waiting;
          // Whether it came before the end of the handle, only the machine knows.
          if (trestleGradWaitParam(grad, i) != trestleSuccess) {
            EXPECT_TRUE(ranks::contains(trestleGetLastError(nullptr), "destroyed"));
          }
        });
      }
      ranks::wait_until([&] { return waiting == 2; });
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      threads.emplace_back([&] { EXPECT_TRUE(succeeded(trestleGradDestroy(grad))); });
      trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
      ranks::wait_until([&] { return trestleGradGetStats(grad, &stats) == trestleInvalidUsage; });
      ranks::meet(process.board, 2);
      for (std::thread& thread : threads) thread.join();
    } else {
      ranks::meet(process.board, 2);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    }
    EXPECT_EQ(model.compare(model.sums(comm, 1, {{0, 0}, {1, 1}}, false), true), "");
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

// A rank that refuses a collective call takes part in the comparison, so the others do not wait for it.
TEST(GradientEnd, ARefusalReachesTheOtherRanks) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{1000}, {2000}}, Memory::kTogether, rank);
    model.register_in(grad);
    if (rank == 0) {
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileEnd", "rank 1 refused"}));
    } else {
      EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileBegin"}));
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    }
    // No step on rank 1, then one.
    EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {rank == 1 ? "no step" : "rank 1 refused"}));
    model.fill(2);
    model.make_ready(grad, 0);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    EXPECT_TRUE(succeeded(trestleGradProfileEnd(grad)));
    EXPECT_TRUE(succeeded(trestleGradPlan(grad, "optimal")));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// As many tensors as DenseNet-201 has, each with a buffer of its own, in a process that may open few files.
TEST(GradientEnd, ManyBuffersNeedFewFiles) {
  for (const char* policy : {"wfbp", "split_optimal:free"}) {
    SCOPED_TRACE(policy);
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      rlimit files{};
      ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
      files.rlim_cur = std::min<rlim_t>(files.rlim_max, 256);
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
      trestleGrad_t grad = make(comm);
      Model model(std::vector<Tensor>(604, Tensor{33}), Memory::kMoving, rank);
      model.register_in(grad);
      const std::vector<double> times(604, 1e-3);
      const trestleGradCost_t whole{2e-5, 1e-8}, half{1e-5, 5e-9};
      ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
      const auto groups = groups_of(plan_json(grad), "groups");
      EXPECT_GT(groups.size(), 256U);
      for (uint64_t step = 1; step <= 2; ++step) {
        model.fill(step);
        model.make_ready(grad, step);
        ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
        ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
        EXPECT_EQ(model.compare(model.sums(comm, step, groups, false), false), "");
      }
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

TEST(GradientEnd, AllTensorsTogetherFitAnAddressSpace) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    int tensor = 0;
    const auto add = [&](size_t count) {
      return trestleGradRegister(grad, "w", count, trestleFloat32, nullptr, nullptr, &tensor);
    };
    ASSERT_TRUE(succeeded(add(size_t{1} << 60)));
    EXPECT_TRUE(refused(add(1), trestleInvalidArgument, {"GradRegister", "more than any memory holds"}));
    EXPECT_EQ(trestleGradPlan(grad, "wfbp"), trestleSystemError);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// The communicator is gone when the scheduler meets the abort. The failure has a sentence all the same.
TEST(GradientEnd, AnAbortOfTheOwnCommunicatorHasASentence) {
  ranks::Job job{.ranks = 2};
  job.body = [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
    trestleGrad_t grad = make(comm);
    Model model({{100'000}}, Memory::kTogether, process.rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    if (process.rank == 0) {
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      std::atomic<bool> waiting{false};
      std::thread waits([&] {
        waiting = true;
        EXPECT_NE(trestleGradWaitParam(grad, 0), trestleSuccess);
        EXPECT_TRUE(ranks::contains(trestleGetLastError(nullptr), "communicator")) << trestleGetLastError(nullptr);
      });
      ranks::wait_until([&] { return waiting.load(); });
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
      waits.join();
    }
    ranks::meet(process.board, 2);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    if (process.rank == 1) {
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    }
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Elements that two tensors share would be added twice.
TEST(GradientEnd, TensorsThatOverlapAreRefused) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const bool parameters : {false, true}) {
      trestleGrad_t grad = make(comm, parameters ? add_to_parameter : nullptr);
      float apart[40] = {}, shared[19] = {};
      float* const second = rank == 1 ? shared + 9 : apart;
      const auto add = [&](const char* name, float* memory, float* other) {
        int tensor = 0;
        EXPECT_TRUE(succeeded(trestleGradRegister(grad, name, 10, trestleFloat32, parameters ? other : memory,
                                                  parameters ? memory : other, &tensor)));
      };
      add("first", second, apart + 10);
      add("second", shared, apart + 20);
      const std::vector<std::string> facts =
          rank == 0 ? std::vector<std::string>{"rank 1 refused"}
                    : std::vector<std::string>{"tensor 0 (\"first\")", "tensor 1 (\"second\")",
                                               parameters ? "parameters" : "gradients"};
      EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidArgument, facts));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    }
  });
}

// A predicted time that nanoseconds cannot hold.
TEST(GradientEnd, APlannedTimeOfAgesIsTheLargestNumber) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{10}}, Memory::kTogether, rank);
    model.register_in(grad);
    const double time = 1e300;
    const trestleGradCost_t cost{1, 1};
    ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, &time, &time, &cost, &cost, &cost)));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
    ASSERT_TRUE(succeeded(trestleGradGetStats(grad, &stats)));
    EXPECT_EQ(stats.plannedNs, UINT64_MAX);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradients
