// Blocks of unequal lengths that all ranks know: their costs and their effect on the selection.
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/catalog.h"
#include "base/rng.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/model/uneven_load.h"
#include "sched/select/select.h"
#include "support/grids.h"

namespace trestle {
namespace uneven_test {
namespace {

Topology grid(const std::vector<int32_t>& sizes, TransportKind transport) {
  return even_grid(sizes, {.transport = transport});
}

PhaseChoice phase(uint8_t dimension, PhaseKind kind, std::string_view name) {
  const Algorithm* const row = find_algorithm(name).value();
  return {dimension, kind, static_cast<uint16_t>(row - algorithms().data())};
}

struct Fractions {
  std::string_view algorithm;
  PhaseKind kind;
  uint64_t sent;  // times the one long block
  uint64_t reduced;
};

TEST(UnevenLoad, OfOneLongBlockIsByTheTable) {
  const Topology topology = grid({4}, TransportKind::kTcp);
  UnevenLoad load(topology, {1000, 0, 0, 0});
  for (const Fractions& expected : std::vector<Fractions>{{"ring", PhaseKind::kAllGather, 1, 0},
                                                          {"direct", PhaseKind::kAllGather, 3, 0},
                                                          {"hd", PhaseKind::kAllGather, 2, 0},
                                                          {"rd", PhaseKind::kAllGather, 2, 0},
                                                          {"bruck", PhaseKind::kAllGather, 2, 0},
                                                          {"ring", PhaseKind::kReduceScatter, 1, 1},
                                                          {"direct", PhaseKind::kReduceScatter, 3, 3},
                                                          {"hd", PhaseKind::kReduceScatter, 2, 2},
                                                          {"line", PhaseKind::kReduceScatter, 1, 1}}) {
    SCOPED_TRACE(expected.algorithm);
    const PhaseChoice choice = phase(0, expected.kind, expected.algorithm);
    ASSERT_TRUE(load.concerns(choice));
    const AlgorithmCost& cost = load.cost(choice, 0);
    EXPECT_EQ(cost.sent_num, expected.sent);
    EXPECT_EQ(cost.sent_den, 1u);
    EXPECT_EQ(cost.reduced_num, expected.reduced);
    EXPECT_EQ(cost.reduced_den, 1u);
    const AlgorithmCost even = algorithms()[choice.algorithm].cost(expected.kind, 4);
    EXPECT_EQ(cost.steps, even.steps);
    EXPECT_EQ(cost.messages, even.messages);
  }
}

// While the other dimension is split, a phase nominally has half of the data. In one group it has the whole long block.
TEST(UnevenLoad, OverDimensionsIsThatOfTheBusiestGroup) {
  const Topology topology = grid({2, 2}, TransportKind::kShm);
  UnevenLoad load(topology, {1000, 0, 0, 0});
  for (const uint8_t d : {0, 1}) {
    const PhaseChoice choice = phase(d, PhaseKind::kAllGather, "ring");
    EXPECT_EQ(load.cost(choice, 1u << (1 - d)).sent_num, 2u) << int{d};
    EXPECT_EQ(load.cost(choice, 0).sent_num, 1u) << int{d};
  }
  UnevenLoad other(topology, {300, 100, 0, 200});  // rank 1 sends rank 0's and its own block along dimension 2
  const AlgorithmCost& cost = other.cost(phase(1, PhaseKind::kAllGather, "direct"), 0);
  EXPECT_EQ(cost.sent_num * 600, 400 * cost.sent_den);
}

TEST(UnevenLoad, EqualBlocksChangeNothing) {
  const Topology topology = grid({4}, TransportKind::kTcp);
  UnevenLoad load(topology, {7, 7, 7, 7});
  EXPECT_FALSE(load.concerns(phase(0, PhaseKind::kAllGather, "ring")));
  EXPECT_FALSE(UnevenLoad(topology, {1, 0, 0, 0}).concerns(phase(0, PhaseKind::kAllReduce, "ring")));
  for (const uint64_t block : {uint64_t{0}, uint64_t{4096}, uint64_t{4} << 20}) {
    SelectionRequest request{.collective = Collective::kAllGatherV, .bytes = 4 * block};
    const Schedule as_if_equal = select_schedule(request, topology, {}).value();
    request.blocks = {block, block, block, block};
    EXPECT_EQ(select_schedule(request, topology, {}).value(), as_if_equal);
  }
}

std::string_view first_algorithm(const Schedule& schedule) {
  return algorithm_name(schedule.chunks.front().phases.front());
}

struct Skewed {
  Collective collective;
  uint64_t bytes;  // of one of eight blocks; the others have 64 each
  std::string_view as_if_equal;
  std::string_view chosen;
};

TEST(UnevenChoice, DiffersForOneLongBlock) {
  const Topology topology = grid({8}, TransportKind::kTcp);
  for (const Skewed& at : std::vector<Skewed>{{Collective::kAllGatherV, uint64_t{512} << 10, "direct", "ring"},
                                              {Collective::kAllGatherV, uint64_t{2} << 20, "hd", "ring"},
                                              {Collective::kReduceScatterV, uint64_t{512} << 10, "direct", "ring"},
                                              {Collective::kReduceScatterV, uint64_t{2} << 20, "hd", "ring"}}) {
    SCOPED_TRACE(testing::Message() << to_string(at.collective) << " " << at.bytes);
    SelectionRequest request{.collective = at.collective, .bytes = at.bytes + 7 * 64};
    const Schedule before = select_schedule(request, topology, {}).value();
    EXPECT_EQ(first_algorithm(before), at.as_if_equal);
    request.blocks = {64, 64, 64, at.bytes, 64, 64, 64, 64};
    const Schedule chosen = select_schedule(request, topology, {}).value();
    EXPECT_EQ(first_algorithm(chosen), at.chosen);
    EXPECT_LT(predict_ns(chosen, topology, request.blocks), predict_ns(before, topology, request.blocks));
    EXPECT_GT(predict_ns(before, topology, request.blocks), predict_ns(before, topology));
  }
}

// For any lengths: the selection is the fastest candidate by the prediction for these lengths, and the same on every
// rank.
TEST(UnevenChoice, IsTheFastestByThePredictionOfTheseLengths) {
  Rng rng(13);
  for (int round = 0; round < 60; ++round) {
    Topology topology = grid({static_cast<int32_t>(2 + rng.below(4))}, TransportKind::kShm);
    if (rng.below(2) != 0) {
      Dimension& dimension = topology.dimensions.emplace_back();
      dimension.size = static_cast<int32_t>(2 + rng.below(3));
      dimension.transport = TransportKind::kTcp;
    }
    SelectionRequest request;
    request.collective = rng.below(2) != 0 ? Collective::kAllGatherV : Collective::kReduceScatterV;
    request.element_bytes = 4;
    const uint64_t limit = uint64_t{1} << rng.below(21);
    for (int32_t r = 0; r < topology.ranks(); ++r)
      request.blocks.push_back(4 * rng.below(rng.below(3) == 0 ? limit : 9));
    request.bytes = std::accumulate(request.blocks.begin(), request.blocks.end(), uint64_t{0});
    for (const char* policy : {"baseline", "themis", "auto"}) {
      SelectionConfig config;
      config.policy = policy;
      const auto candidates = selection_candidates(request, topology, config).value();
      uint64_t fastest_ps = UINT64_MAX;
      for (const SelectionCandidate& one : candidates) fastest_ps = std::min(fastest_ps, one.time_ps);
      for (const SelectionCandidate& one : candidates) {
        EXPECT_EQ((one.time_ps + 999) / 1000, predict_ns(one.schedule, topology, request.blocks));
        if (!one.chosen) continue;
        EXPECT_EQ(one.time_ps, fastest_ps);
        EXPECT_EQ(one.schedule, select_schedule(request, topology, config).value());
      }
    }
  }
}

}  // namespace
}  // namespace uneven_test
}  // namespace trestle
