// Updates of parameters between the halves, and measured times.
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_update_test {
namespace {

using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

const std::vector<Tensor> kFloats = {{1000}, {0}, {7}, {30'000}, {1}, {4097}, {64}};

// parameter += gradient, which shows each update that is missing or made twice. Counts the elements.
struct Updates {
  std::atomic<uint64_t> elements{0};
  std::atomic<int> library_calls_refused{0};
  trestleComm_t comm = nullptr;

  static void apply(void* context, int, size_t, size_t count, const void* gradient, void* parameter) {
    auto& updates = *static_cast<Updates*>(context);
    for (size_t i = 0; i < count; ++i) {
      float sum, value;
      std::memcpy(&sum, static_cast<const std::byte*>(gradient) + i * sizeof sum, sizeof sum);
      std::memcpy(&value, static_cast<const std::byte*>(parameter) + i * sizeof value, sizeof value);
      value += sum;
      std::memcpy(static_cast<std::byte*>(parameter) + i * sizeof value, &value, sizeof value);
    }
    updates.elements += count;
    if (trestleCommSynchronize(updates.comm) == trestleInvalidUsage) ++updates.library_calls_refused;
  }
};

size_t elements_of(const std::vector<Tensor>& tensors) {
  size_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.count;
  return elements;
}

// Adds the program's own sums to what the parameters should be.
void add(std::vector<std::vector<float>>& parameters, const std::vector<std::vector<std::byte>>& sums) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (size_t k = 0; k < parameters[i].size(); ++k) {
      float sum;
      std::memcpy(&sum, sums[i].data() + k * sizeof sum, sizeof sum);
      parameters[i][k] += sum;
    }
  }
}

TEST(GradientUpdates, GiveWhatWholeUpdatesGive) {
  for (const char* policy :
       {"wfbp", "threshold:16K", "dear:16K", "dear:16K:lookahead", "split_optimal:shared", "split_optimal:free"}) {
    for (const Memory memory : {Memory::kTogether, Memory::kApart, Memory::kMoving}) {
      const Settings settings{.ranks = 3, .transport = "shm"};
      SCOPED_TRACE(testing::Message() << policy << ", memory " << static_cast<int>(memory));
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        Updates updates;
        updates.comm = comm;
        trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
        config.update = Updates::apply;
        config.updateContext = &updates;
        trestleGrad_t grad = make({comm}, config);
        Model model(kFloats, memory, rank);
        model.register_in(grad, true);
        set_times(grad, model.tensors());
        ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
        const std::string json = plan_json(grad);
        const auto groups = groups_of(json, "groups");
        const auto gathers = groups_of(json, "gather_groups");
        const bool halves = !gathers.empty();
        std::vector<std::vector<float>> expected;
        for (const Tensor& tensor : kFloats) expected.emplace_back(tensor.count, 0.0f);
        for (uint64_t step = 1; step <= 4; ++step) {
          model.fill(step);
          model.make_ready(grad, step * 17 + static_cast<uint64_t>(rank));
          ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
          for (int i = 0; i < model.tensors(); ++i) ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
          ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
          add(expected, model.sums(comm, step, groups, halves && gathers == groups));
        }
        const bool exact = !halves || gathers == groups;
        for (size_t i = 0; i < expected.size(); ++i) {
          for (size_t k = 0; k < expected[i].size(); ++k) {
            float value;
            std::memcpy(&value, model.parameter(i) + k * sizeof value, sizeof value);
            ASSERT_NEAR(value, expected[i][k], exact ? 0 : 0.1) << "tensor " << i << ", element " << k;
          }
        }
        EXPECT_GT(updates.library_calls_refused, 0);
        EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      });
    }
  }
}

// Every rank makes whole updates; shards are updated on one rank each.
TEST(GradientUpdates, AreOfEachElementOnce) {
  for (const char* policy : {"wfbp", "dear:16K", "split_optimal:free"}) {
    SCOPED_TRACE(policy);
    ranks::on_threads({.ranks = 3, .transport = "loopback"}, [&](int rank, trestleComm_t comm) {
      Updates updates;
      trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
      config.update = Updates::apply;
      config.updateContext = &updates;
      trestleGrad_t grad = make({comm}, config);
      Model model(kFloats, Memory::kApart, rank);
      model.register_in(grad, true);
      set_times(grad, model.tensors());
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
      model.step(grad, 1, 0);
      auto all = static_cast<int64_t>(updates.elements.load());
      ASSERT_TRUE(succeeded(trestleAllReduce(&all, &all, 1, trestleInt64, trestleSum, comm, nullptr)));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
      const size_t elements = elements_of(kFloats);
      EXPECT_EQ(static_cast<size_t>(all), policy == std::string("wfbp") ? 3 * elements : elements);
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

[[noreturn]] void throws(void*, int, size_t, size_t, const void*, void*) {
  throw std::runtime_error("no such learning rate");
}

TEST(GradientUpdates, AnExceptionEndsTheScheduler) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.update = throws;
    trestleGrad_t grad = make({comm}, config);
    Model model({{100}}, Memory::kTogether, rank);
    model.register_in(grad, true);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    model.fill(1);
    model.make_ready(grad, 0);
    const std::vector<std::string> facts = {"update function", "no such learning rate"};
    // The update may have run, and thrown, before the step ends here.
    const trestleResult_t ended = trestleGradStepEnd(grad);
    if (ended != trestleSuccess) {
      EXPECT_TRUE(refused(ended, trestleInvalidUsage, facts));
    }
    EXPECT_TRUE(refused(trestleGradSynchronize(grad), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleGradReady(grad, 0, nullptr), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, facts));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    float x = 1;
    EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  });
}

// ---- measured times

std::string profile_json(trestleGrad_t grad) {
  size_t size = 0;
  EXPECT_TRUE(succeeded(trestleGradProfileJson(grad, nullptr, &size)));
  std::string text(size, '?');
  EXPECT_TRUE(succeeded(trestleGradProfileJson(grad, text.data(), &size)));
  text.pop_back();
  return text;
}

// Two steps without a plan, then by a plan of measured times, on all ranks the same.
TEST(GradientProfile, MeasuresPlansAndTrains) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(kFloats, Memory::kTogether, rank);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileBegin"}));
    ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    EXPECT_TRUE(refused(trestleGradProfileBegin(grad), trestleInvalidUsage, {"already"}));
    EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"no step"}));
    for (uint64_t step = 1; step <= 2; ++step) {
      model.fill(step);
      for (int i = 0; i < model.tensors(); ++i) {
        ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
        ranks::spin(100'000);
      }
      for (int i = model.tensors(); i-- > 0;) {
        ranks::spin(i == 3 ? 4'000'000 : 100'000);
        ASSERT_TRUE(succeeded(trestleGradReady(grad, i, nullptr)));
      }
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    }
    ASSERT_TRUE(succeeded(trestleGradProfileEnd(grad), comm));
    const std::string profile = profile_json(grad);
    EXPECT_TRUE(ranks::contains(profile, "\"name\":\"w3\",\"bytes\":120000,\"forward_s\":")) << profile;
    double seconds = 0;
    EXPECT_TRUE(succeeded(trestleGradSimulate(grad, "optimal", &seconds)));
    EXPECT_GT(seconds, 0);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "auto")));
    // Every rank has rank 0's plan.
    std::string plan = plan_json(grad);
    std::string first = plan;
    first.resize(2000);
    ASSERT_TRUE(succeeded(trestleBroadcast(first.data(), first.data(), first.size(), trestleInt8, 0, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    plan.resize(first.size());
    EXPECT_EQ(plan, first);
    const trestleGradStats_t stats = stats_of(grad);
    EXPECT_GT(stats.plannedNs, 0U);
    EXPECT_EQ(stats.steps, 2U);
    // Measured while a plan is carried out, and planned again.
    for (uint64_t step = 3; step <= 6; ++step) {
      if (step == 4) {
        ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
      }
      model.fill(step);
      model.make_ready(grad, step);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      for (int i = 0; i < model.tensors(); ++i) ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
    }
    ASSERT_TRUE(succeeded(trestleGradProfileEnd(grad), comm));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "optimal")));
    model.step(grad, 7, 7);
    EXPECT_EQ(model.compare(model.sums(comm, 7, groups_of(plan_json(grad), "groups"), false), true), "");
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_update_test
}  // namespace gradients
