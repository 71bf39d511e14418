// The end of a scheduler and of its communicator, and steps that several threads work on.
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_end_test {
namespace {

using ranks::succeeded;

// parameter += gradient
void add_to_parameter(void*, int, size_t, size_t count, const void* gradient, void* parameter) {
  for (size_t i = 0; i < count; ++i) static_cast<float*>(parameter)[i] += static_cast<const float*>(gradient)[i];
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
  ranks::joined({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
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
  });
}

// A thread that ends the step as soon as it can comes right behind the last gradient of another thread.
TEST(GradientEnd, AnotherThreadEndsTheStep) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(std::vector<Tensor>(6, Tensor{50}), Memory::kTogether, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    for (uint64_t step = 1; step <= 60; ++step) {
      if (step == 30) {
        ASSERT_TRUE(succeeded(trestleGradProfileEnd(grad)));
      }
      if (step == 30 || step == 45) {
        ASSERT_TRUE(succeeded(trestleGradPlan(grad, step == 30 ? "wfbp" : "dear:256")));
      }
      model.fill(step);
      std::thread ends([&] {
        ranks::wait_until([&] { return trestleGradStepEnd(grad) == trestleSuccess; });
        for (int i = 0; i < model.tensors(); ++i) EXPECT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
      });
      model.make_ready(grad, step);
      ends.join();
      if (step < 30) continue;
      const auto groups = groups_of(plan_json(grad), "groups");
      ASSERT_EQ(model.compare(model.sums(comm, step, groups, step >= 45), true), "");
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// The communicator is gone when the scheduler meets the abort. The failure has a sentence all the same.
TEST(GradientEnd, AnAbortOfTheOwnCommunicatorHasASentence) {
  ranks::joined({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
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
  });
}

}  // namespace
}  // namespace gradient_end_test
}  // namespace gradients
