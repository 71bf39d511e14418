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

}  // namespace
}  // namespace gradients
