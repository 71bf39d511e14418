// Plans that compress: of each tensor only the largest elements travel, by each collective that a plan may name. All
// results are those of the specification, computed for all ranks in one place; what stays behind comes with GradDrain.
// So residual + sent = gradient, for every worker and step.
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "conformance/gradient/gradient_model.h"
#include "support/plain_top_k.h"

namespace gradients {
namespace gradient_topk_test {
namespace {

using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

const std::vector<Tensor> kTensors = {{1000}, {0}, {7}, {3000, trestleFloat64}, {1}, {4097}, {64, trestleFloat64}};

enum class By : uint8_t { kRing, kTree, kAllGather };
const char* const kNames[] = {"ring", "tree", "all-gather"};

struct Case {
  By by = By::kRing;
  double ratio = 0.1;
  Settings settings{.ranks = 2, .transport = "shm"};
  Memory memory = Memory::kTogether;
  trestleRedOp_t op = trestleSum;
  std::vector<Tensor> tensors = kTensors;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << kNames[static_cast<int>(one.by)] << ", ratio " << one.ratio << ", " << one.settings << ", memory "
             << static_cast<int>(one.memory) << ", op " << one.op;
}

size_t elements_of(double ratio, size_t count) {
  return static_cast<size_t>(std::ceil(ratio * static_cast<double>(count)));
}

// Startups so large beside the bytes that travel that FLEX's rules 5a to 5c name the collective; a tree only among
// eight ranks.
void set_costs(trestleGrad_t grad, const Case& what, int ranks) {
  const double n = ranks;
  double bytes = 0;
  for (const Tensor& tensor : what.tensors) bytes += static_cast<double>(tensor.bytes());
  const double startup = what.by == By::kAllGather ? 1e-3 : what.by == By::kTree ? 7e-5 : 0;
  const double per_byte = 1e-4 / std::max(1.0, bytes * what.ratio);
  const double steps = 2 * (n - 1);
  const trestleGradCost_t whole{steps * startup, steps / n * per_byte};
  const trestleGradCost_t half{whole.startup / 2, whole.perByte / 2};
  const std::vector<double> times(what.tensors.size(), 1e-3);
  ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
}

// Every rank's residuals. All numbers are whole, so sums are exact.
class Oracle {
 public:
  Oracle(const Case& what, int ranks) : what_(what), ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      models_.emplace_back(what.tensors, Memory::kTogether, rank, Numbers::kWhole);
      residuals_.emplace_back();
      for (const Tensor& tensor : what.tensors) residuals_.back().emplace_back(tensor.count);
    }
  }
  // The step with that number; the `turn`-th since the plan or the last drain. Returns the results.
  std::vector<std::vector<std::byte>> step(uint64_t number, uint64_t turn) {
    sent_.assign(models_.size(), 0);
    whole_ = sent_;
    std::vector<std::vector<std::byte>> results;
    for (Model& model : models_) model.fill(number);
    for (size_t t = 0; t < what_.tensors.size(); ++t) results.push_back(written(t, tensor_step(t, turn)));
    return results;
  }
  // The sums of what stayed behind.
  std::vector<std::vector<std::byte>> rest() {
    std::vector<std::vector<std::byte>> results;
    for (size_t t = 0; t < what_.tensors.size(); ++t) {
      std::vector<double> sums(what_.tensors[t].count);
      for (auto& residual : residuals_) {
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += std::exchange(residual[t][i], 0);
      }
      results.push_back(written(t, sums));
    }
    return results;
  }
  double gain(int rank) const {
    const auto r = static_cast<size_t>(rank);
    return whole_[r] == 0 ? 1 : sent_[r] / whole_[r];
  }
  uint64_t sent_per_step() const {
    uint64_t sum = 0;
    for (const Tensor& tensor : what_.tensors) sum += elements_of(what_.ratio, tensor.count);
    return sum;
  }

 private:
  std::vector<double> tensor_step(size_t t, uint64_t turn) {
    const Tensor& shape = what_.tensors[t];
    std::vector<double> sums(shape.count);
    for (size_t r = 0; r < models_.size(); ++r) {
      for (size_t i = 0; i < shape.count; ++i) {
        residuals_[r][t][i] += read(models_[r].gradient(t), shape, i);
        whole_[r] += residuals_[r][t][i] * residuals_[r][t][i];
      }
    }
    const size_t k = elements_of(what_.ratio, shape.count);
    std::vector<uint32_t> named = trestle::reference::sorted_top_k(residuals_[turn % models_.size()][t], k);
    for (size_t r = 0; r < models_.size(); ++r) {
      if (what_.by == By::kAllGather) named = trestle::reference::sorted_top_k(residuals_[r][t], k);
      for (const uint32_t i : named) {
        const double value = std::exchange(residuals_[r][t][i], 0);
        sums[i] += value;
        sent_[r] += value * value;
      }
    }
    return sums;
  }
  static double read(const std::byte* bytes, const Tensor& shape, size_t i) {
    const auto at = [&](auto value) {
      std::memcpy(&value, bytes + i * sizeof value, sizeof value);
      return static_cast<double>(value);
    };
    return shape.type == trestleFloat64 ? at(double{}) : at(float{});
  }
  std::vector<std::byte> written(size_t t, const std::vector<double>& sums) const {
    const Tensor& shape = what_.tensors[t];
    std::vector<std::byte> bytes(shape.bytes());
    for (size_t i = 0; i < shape.count; ++i) {
      const double value = what_.op == trestleAvg ? sums[i] / ranks_ : sums[i];
      const auto narrow = static_cast<float>(value);
      if (shape.type == trestleFloat64) std::memcpy(bytes.data() + 8 * i, &value, 8);
      if (shape.type == trestleFloat32) std::memcpy(bytes.data() + 4 * i, &narrow, 4);
    }
    return bytes;
  }

  const Case what_;
  const int ranks_;
  std::vector<Model> models_;
  std::vector<std::vector<std::vector<double>>> residuals_;  // by rank and tensor
  std::vector<double> sent_, whole_;                         // squares of the last step, by rank
};

trestleGrad_t make(trestleComm_t comm, const Case& what, trestleGradUpdate_t update = nullptr) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.op = what.op;
  config.allow = trestleGradAllowCompression;
  config.update = update;
  return gradients::make({comm}, config);
}

// Ranks come to their calls at different times, as the seed says.
void dawdle(uint64_t seed) {
  ranks::Random random{seed};
  for (uint64_t i = random.below(300); i > 0; --i) std::this_thread::yield();
}

void step(trestleGrad_t grad, Model& model, uint64_t number, int rank) {
  const uint64_t seed = number * 31 + static_cast<uint64_t>(rank);
  model.fill(number);
  dawdle(seed);
  model.make_ready(grad, seed);
  ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
  if (number % 2 == 0) {
    for (int i = 0; i < model.tensors(); ++i) ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, i)));
  }
  ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
}

// A rank's model, and the scheduler with the case's plan for it.
struct Trained {
  Trained(const Case& what, int rank, trestleComm_t comm, trestleGradUpdate_t update = nullptr)
      : grad(make(comm, what, update)), model(what.tensors, what.memory, rank, Numbers::kWhole) {
    model.register_in(grad, update != nullptr);
    set_costs(grad, what, what.settings.ranks);
    EXPECT_TRUE(succeeded(trestleGradPlan(grad, ("topk:" + std::to_string(what.ratio)).c_str())));
  }

  const trestleGrad_t grad;
  Model model;
};

// Every step's results, and what a drain brings in, are the oracle's.
void train(const Case& what, int rank, trestleComm_t comm) {
  constexpr uint64_t kSteps = 7;
  const int all = what.settings.ranks;
  Trained trained(what, rank, comm);
  auto& [grad, model] = trained;
  const std::string json = plan_json(grad);
  EXPECT_TRUE(ranks::contains(json, std::string("\"collective\":\"") + kNames[static_cast<int>(what.by)] + "\""))
      << json;
  Oracle oracle(what, all);
  uint64_t number = 0, turn = 0;
  for (const uint64_t steps : {kSteps, uint64_t{2}}) {
    for (turn = 1; turn <= steps; ++turn) {
      step(grad, model, ++number, rank);
      ASSERT_EQ(model.compare(oracle.step(number, turn), true), "") << "step " << number;
      EXPECT_EQ(stats_of(grad).gain, oracle.gain(rank)) << "step " << number;
    }
    const bool leaves = oracle.sent_per_step() * number < stats_of(grad).compressedElements;
    int batches = -1;
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    ASSERT_EQ(batches, leaves ? static_cast<int>(steps) : 0);
    if (leaves) {
      ASSERT_EQ(model.compare(oracle.rest(), true), "");
    }
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_EQ(batches, 0);
  }
  EXPECT_EQ(stats_of(grad).sentElements, oracle.sent_per_step() * number);
  EXPECT_NEAR(stats_of(grad).ratio, what.ratio, 1e-6);
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
  step(grad, model, ++number, rank);
  if (what.op == trestleSum) {
    EXPECT_EQ(model.compare(model.whole_sums(all, number, number), true), "");
  }
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
}

void train_on_all(const Case& what) {
  SCOPED_TRACE(testing::Message() << what << ", tensors " << what.tensors.size());
  ranks::on_ranks(what.settings, [&](int rank, trestleComm_t comm) { train(what, rank, comm); });
}

// On each rank, for both kinds of collectives: all ranks send what one names, or each its own.
void for_both_kinds(const Case& like, const std::function<void(const Case&, int rank, trestleComm_t)>& body) {
  for (const By by : {By::kRing, By::kAllGather}) {
    Case what = like;
    what.by = by;
    SCOPED_TRACE(testing::Message() << what);
    ranks::on_threads(what.settings, [&](int rank, trestleComm_t comm) { body(what, rank, comm); });
  }
}

TEST(GradientTopK, SendsWhatTheSpecificationSays) {
  for (const By by : {By::kRing, By::kTree, By::kAllGather}) {
    for (const Memory memory : {Memory::kTogether, Memory::kApart, Memory::kMoving}) {
      for (const double ratio : {0.001, 0.1, 1.0}) {
        if (memory != Memory::kTogether && ratio != 0.1) continue;
        train_on_all({by, ratio, {.ranks = by == By::kTree ? 8 : 3, .transport = "shm"}, memory});
      }
    }
  }
}

TEST(GradientTopK, OnOtherTransportsAndProcesses) {
  for (const By by : {By::kRing, By::kAllGather}) {
    for (const Settings& settings :
         {Settings{.ranks = 2, .transport = "loopback"}, Settings{.ranks = 3, .transport = "tcp"},
          Settings{.ranks = 4, .dims = "2x2", .transport = "shm,tcp"},
          Settings{.ranks = 3, .transport = "shm", .processes = true}}) {
      train_on_all({by, 0.05, settings});
    }
  }
}

TEST(GradientTopK, MeansAndSingleTensors) {
  for (const std::vector<Tensor>& tensors : {std::vector<Tensor>{{500}}, {{1}}, {{0}, {3}, {0}}, {{2}, {1}}}) {
    for (const By by : {By::kRing, By::kAllGather}) {
      train_on_all({by, 0.3, {.ranks = 4, .transport = "shm"}, Memory::kApart, trestleAvg, tensors});
    }
  }
}

// One rank alone: the largest elements at once, the others later.
TEST(GradientTopK, OneRank) {
  train_on_all({By::kRing, 0.2, {.ranks = 1}});
}

// Elements at any address.
template <class T>
void add_elements(const void* gradient, void* parameter, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T given, sum;
    std::memcpy(&given, static_cast<const std::byte*>(gradient) + i * sizeof(T), sizeof(T));
    std::memcpy(&sum, static_cast<std::byte*>(parameter) + i * sizeof(T), sizeof(T));
    sum += given;
    std::memcpy(static_cast<std::byte*>(parameter) + i * sizeof(T), &sum, sizeof(T));
  }
}

// parameter += gradient
void add_to_parameter(void*, int tensor, size_t offset, size_t count, const void* gradient, void* parameter) {
  EXPECT_EQ(offset, 0U) << "a whole tensor, on every rank";
  EXPECT_EQ(count, kTensors[static_cast<size_t>(tensor)].count);
  const bool wide = kTensors[static_cast<size_t>(tensor)].type == trestleFloat64;
  if (wide) add_elements<double>(gradient, parameter, count);
  if (!wide) add_elements<float>(gradient, parameter, count);
}

// With an update function, steps and the drain together have applied every gradient once.
TEST(GradientTopK, UpdatesApplyEveryGradientOnce) {
  const Case like{By::kRing, 0.1, {.ranks = 3, .transport = "shm"}, Memory::kApart};
  for_both_kinds(like, [](const Case& what, int rank, trestleComm_t comm) {
    Trained trained(what, rank, comm, add_to_parameter);
    constexpr uint64_t kSteps = 5;
    for (uint64_t number = 1; number <= kSteps; ++number) step(trained.grad, trained.model, number, rank);
    ASSERT_TRUE(succeeded(trestleGradDrain(trained.grad, nullptr)));
    EXPECT_EQ(trained.model.compare_parameters(trained.model.whole_sums(3, 1, kSteps)), "");
    EXPECT_TRUE(succeeded(trestleGradDestroy(trained.grad)));
  });
}

// A NaN travels as soon as its rank names the elements, is counted, and is gone behind that.
TEST(GradientTopK, NansAreCountedAndTravel) {
  const Case like{By::kRing, 0.01, {.ranks = 2, .transport = "shm"}, Memory::kTogether, trestleSum, {{100}, {200}}};
  for_both_kinds(like, [](const Case& what, int rank, trestleComm_t comm) {
    Trained trained(what, rank, comm);
    const trestleGrad_t grad = trained.grad;
    Model& model = trained.model;
    const auto is_nan = [&] {
      float value;
      std::memcpy(&value, model.gradient(1) + 7 * sizeof value, sizeof value);
      return std::isnan(value);
    };
    model.fill(1);
    const float nan = std::nanf("");
    if (rank == 1) std::memcpy(model.gradient(1) + 7 * sizeof nan, &nan, sizeof nan);
    model.make_ready(grad, 0);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    EXPECT_TRUE(is_nan()) << "rank 1 names the elements of step 1";
    EXPECT_EQ(stats_of(grad).nans, rank == 1 ? 1U : 0U);
    for (uint64_t number = 2; number <= 4; ++number) {
      step(grad, model, number, rank);
      EXPECT_FALSE(is_nan());
    }
    EXPECT_EQ(stats_of(grad).nans, rank == 1 ? 1U : 0U);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

uint16_t bfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

// Of large numbers, whose sum fits into no float32, beside a tensor of another type.
TEST(GradientTopK, MeansOfLargeNumbersAreNumbers) {
  constexpr size_t kCount = 2000;
  for (const By by : {By::kRing, By::kTree, By::kAllGather}) {
    Case what{by, 0.1, {.ranks = by == By::kTree ? 8 : 2}, Memory::kTogether, trestleAvg, {{kCount}, {kCount}}};
    what.settings.transport = "shm";
    ranks::on_threads(what.settings, [&](int rank, trestleComm_t comm) {
      // Every tenth number is sent, the rest stays behind.
      std::vector<uint16_t> large(kCount), first(kCount), second(kCount);
      std::vector<float> whole(kCount), whole_first(kCount), whole_second(kCount);
      for (size_t i = 0; i < kCount; ++i) {
        const bool sent = i % 10 == 0;
        large[i] = (sent ? first : second)[i] = bfloat(sent ? 3e38f : -2e38f);
        whole[i] = (sent ? whole_first : whole_second)[i] = sent ? 8 : 2;
      }
      trestleGrad_t grad = make(comm, what);
      int number = 0;
      ASSERT_TRUE(succeeded(trestleGradRegister(grad, "l", kCount, trestleBfloat16, large.data(), nullptr, &number)));
      ASSERT_TRUE(succeeded(trestleGradRegister(grad, "w", kCount, trestleFloat32, whole.data(), nullptr, &number)));
      Case costs = what;
      if (by == By::kTree) costs.tensors = {{kCount * 3 / 4}, {kCount * 3 / 4}};  // a byte costs more
      set_costs(grad, costs, what.settings.ranks);
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, "topk:0.1")));
      EXPECT_TRUE(ranks::contains(plan_json(grad), kNames[static_cast<int>(by)])) << plan_json(grad);
      for (const int tensor : {1, 0}) ASSERT_TRUE(succeeded(trestleGradReady(grad, tensor, nullptr)));
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
      EXPECT_TRUE(large == first && whole == whole_first) << what << ", rank " << rank << ": " << large[0] << whole[0];
      ASSERT_TRUE(succeeded(trestleGradDrain(grad, nullptr)));
      EXPECT_TRUE(large == second && whole == whole_second)
          << what << ", rank " << rank << ": " << large[1] << whole[1];
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

// 16-bit gradients: each result is rounded once, and nothing is lost of small values.
TEST(GradientTopK, SixteenBits) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    Case what{By::kRing, 0.5, {.ranks = 2}, Memory::kTogether, trestleSum, {{4}}};
    trestleGrad_t grad = make(comm, what);
    std::vector<uint16_t> gradient(4);
    int number = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "w", 4, trestleBfloat16, gradient.data(), nullptr, &number)));
    set_costs(grad, what, 2);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "topk:0.5")));
    const std::vector<std::vector<float>> results = {{64, 0, 64, 0}, {64, 0, 64, 0}, {64, 0, 64, 0}};
    for (const std::vector<float>& expected : results) {
      gradient = {bfloat(32), bfloat(0.125), bfloat(32), bfloat(0.25)};
      ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, 0)));
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(gradient[i], bfloat(expected[i])) << i;
    }
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, nullptr)));
    EXPECT_EQ(gradient, (std::vector<uint16_t>{0, bfloat(0.75), 0, bfloat(1.5)})) << "rank " << rank;
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// ---- misuse and failures

TEST(GradientTopK, WhatStayedBehindIsNotLostToAnotherPlan) {
  Case what;
  ranks::on_threads(what.settings, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm, what);
    Model model(what.tensors, what.memory, rank, Numbers::kWhole);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "topk:0.1"), trestleInvalidUsage, {"topk:0.1", "times"}));
    set_costs(grad, what, 2);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "topk:2"), trestleInvalidArgument, {"topk:2"}));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "topk:0.1")));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "topk:0.2"))) << "nothing has stayed behind yet";
    step(grad, model, 1, rank);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, {"gradients of 1 step", "GradDrain"}));
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientTopK, OtherTypesAreRefused) {
  Case what{By::kRing, 0.1, {.ranks = 2}, Memory::kTogether, trestleSum, {{100}, {50, trestleInt32}}};
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm, what);
    Model model(what.tensors, what.memory, rank);
    model.register_in(grad);
    set_costs(grad, what, 2);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "topk:0.1"), trestleInvalidUsage, {"tensor 1 (\"w1\")", "int32"}));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "auto")));
    EXPECT_FALSE(ranks::contains(plan_json(grad), "topk"));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// A rank that leaves in the middle of a step: the calls of the others end with the communicator's sentence.
TEST(GradientTopK, ARankThatLeavesEndsTheWait) {
  for (const By by : {By::kRing, By::kAllGather}) {
    Case what{by};
    ranks::joined(what.settings, [&](ranks::Process& process, trestleComm_t comm) {
      Trained trained(what, process.rank, comm);
      auto& [grad, model] = trained;
      step(grad, model, 1, process.rank);
      model.fill(2);
      if (process.rank == 0) {
        model.make_ready(grad, 0);
        ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
        ranks::meet(process.board, 2);
        EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleAborted, {"rank 1"}));
        EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleAborted, {"rank 1"}));
      } else {
        // Half of its step.
        ASSERT_TRUE(succeeded(trestleGradReady(grad, model.tensors() - 1, nullptr)));
        ranks::meet(process.board, 2);
        EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
      }
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      if (process.rank == 0) {
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      }
    });
  }
}

TEST(GradientTopK, ADestroyedSchedulerHasSentItsPart) {
  Case what;
  ranks::on_threads(what.settings, [&](int rank, trestleComm_t comm) {
    Trained trained(what, rank, comm);
    auto& [grad, model] = trained;
    model.fill(1);
    model.make_ready(grad, 3);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    if (rank == 0) {
      EXPECT_TRUE(succeeded(trestleGradSynchronize(grad)));
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    Oracle oracle(what, 2);
    EXPECT_EQ(model.compare(oracle.step(1, 1), true), "");
  });
}

}  // namespace
}  // namespace gradient_topk_test
}  // namespace gradients
