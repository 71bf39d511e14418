// What one rank or the process refuses: the others do not wait for it, and limits have sentences.
#include <sys/resource.h>

#include <algorithm>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_limits_test {
namespace {

using ranks::refused;
using ranks::succeeded;

void no_update(void*, int, size_t, size_t, const void*, void*) {}

// A rank that refuses a collective call takes part in the comparison, so the others do not wait for it.
TEST(GradientLimits, ARefusalReachesTheOtherRanks) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{1000}, {2000}}, Memory::kTogether, rank);
    model.register_in(grad);
    if (rank == 0) {
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      EXPECT_TRUE(
          refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileEnd", "rank 1 cannot take part"}));
    } else {
      EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileBegin"}));
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    }
    // No step on rank 1, then one.
    EXPECT_TRUE(
        refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {rank == 1 ? "no step" : "rank 1 cannot take part"}));
    model.fill(2);
    model.make_ready(grad, 0);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    EXPECT_TRUE(succeeded(trestleGradProfileEnd(grad)));
    EXPECT_TRUE(succeeded(trestleGradPlan(grad, "optimal")));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// As many tensors as DenseNet-201 has, each with a buffer of its own, in a process that may open few files.
TEST(GradientLimits, ManyBuffersNeedFewFiles) {
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
        model.step(grad, step, step);
        EXPECT_EQ(model.compare(model.sums(comm, step, groups, false), false), "");
      }
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

TEST(GradientLimits, AllTensorsTogetherFitAnAddressSpace) {
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

// Elements that two tensors share would be added twice.
TEST(GradientLimits, TensorsThatOverlapAreRefused) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const bool parameters : {false, true}) {
      trestleGrad_t grad = make(comm, parameters ? no_update : nullptr);
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
          rank == 0 ? std::vector<std::string>{"rank 1 cannot take part"}
                    : std::vector<std::string>{"tensor 0 (\"first\")", "tensor 1 (\"second\")",
                                               parameters ? "parameters" : "gradients"};
      EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidArgument, facts));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    }
  });
}

// A predicted time that nanoseconds cannot hold.
TEST(GradientLimits, APlannedTimeOfAgesIsTheLargestNumber) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{10}}, Memory::kTogether, rank);
    model.register_in(grad);
    const double time = 1e300;
    const trestleGradCost_t cost{1, 1};
    ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, &time, &time, &cost, &cost, &cost)));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    const trestleGradStats_t stats = stats_of(grad);
    EXPECT_EQ(stats.plannedNs, UINT64_MAX);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_limits_test
}  // namespace gradients
