// The optimum of tiny systems by exhaustive search (sizes on a grid, orders of both halves, sequences on the links,
// deliberate idle time), compared with the result of `auto` on the same grid.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "sched/policy/portfolio.h"
#include "sched/policy/priority_rules.h"
#include "unit/sched/systems.h"

namespace trestle {
namespace exhaustive_test {
namespace {

constexpr size_t kLinks = 2;

// Branch and bound over active schedules (Giffler and Thompson, "Algorithms for solving production-scheduling
// problems", 1960). In these no phase can start earlier without delaying another one. One of them is an optimum.
class BestSequence {
 public:
  explicit BestSequence(const Simulation& simulation) : simulation_(simulation), chunks_(simulation.first.size() - 1) {}

  // The shortest time, or `limit` if none is below it.
  uint64_t find(uint64_t limit) {
    best_ = limit;
    State state;
    for (size_t k = 0; k < chunks_; ++k) state.next[k] = simulation_.first[k];
    branch(state);
    return best_;
  }

 private:
  struct State {
    std::array<uint32_t, 4> next{};
    std::array<uint64_t, 4> ready{};
    std::array<uint64_t, kLinks> free{};
  };

  bool done(const State& state, size_t k) const { return state.next[k] == simulation_.first[k + 1]; }

  uint64_t start_of(const State& state, size_t k) const {
    return std::max(state.ready[k], state.free[simulation_.phases[state.next[k]].link]);
  }

  uint64_t bound(const State& state) const {
    uint64_t most = 0;
    std::array<uint64_t, kLinks> work = state.free;
    for (size_t k = 0; k < chunks_; ++k) {
      uint64_t path = state.ready[k];
      for (uint32_t i = state.next[k]; i < simulation_.first[k + 1]; ++i) {
        path += simulation_.phases[i].link_ticks + simulation_.phases[i].delay_ticks;
        work[simulation_.phases[i].link] += simulation_.phases[i].link_ticks;
      }
      most = std::max(most, path);
    }
    return std::max({most, work[0], work[1]});
  }

  void branch(const State& state) {
    if (bound(state) >= best_) return;
    uint64_t first_end = UINT64_MAX;
    uint8_t link = 0;
    for (size_t k = 0; k < chunks_; ++k) {
      if (done(state, k)) continue;
      const SimulatedPhase& phase = simulation_.phases[state.next[k]];
      const uint64_t end = start_of(state, k) + phase.link_ticks;
      if (end >= first_end) continue;
      first_end = end;
      link = phase.link;
    }
    if (first_end == UINT64_MAX) {
      best_ = std::min(best_, *std::max_element(state.ready.begin(), state.ready.end()));
      return;
    }
    for (size_t k = 0; k < chunks_; ++k) {
      if (done(state, k) || simulation_.phases[state.next[k]].link != link) continue;
      const uint64_t start = start_of(state, k);
      if (start >= first_end) continue;
      const SimulatedPhase& phase = simulation_.phases[state.next[k]];
      State after = state;
      after.free[link] = start + phase.link_ticks;
      after.ready[k] = after.free[link] + phase.delay_ticks;
      ++after.next[k];
      branch(after);
    }
  }

  const Simulation& simulation_;
  size_t chunks_;
  uint64_t best_ = 0;
};

ChunkSchedule chunk_of(PolicyCase& test, uint64_t bytes, uint32_t code) {
  const uint8_t scatter = code & 1;
  const uint8_t gather = code >> 1 & 1;
  ChunkSchedule chunk{bytes, {}};
  for (const uint8_t d : {scatter, static_cast<uint8_t>(1 - scatter)}) {
    chunk.phases.push_back({d, PhaseKind::kReduceScatter, 0});
  }
  for (const uint8_t d : {gather, static_cast<uint8_t>(1 - gather)}) {
    chunk.phases.push_back({d, PhaseKind::kAllGather, 0});
  }
  for (PhaseChoice& phase : chunk.phases) phase.algorithm = test.model().fixed_algorithm(phase).value();
  return chunk;
}

// Tries all sizes that are multiples of `unit`, all orders and all sequences.
uint64_t exhaustive_optimum(PolicyCase& test, uint32_t chunks, uint64_t unit, uint64_t upper) {
  const uint64_t units = test.request().bytes / unit;
  std::array<uint8_t, 256> links{};
  links[1] = 1;
  uint64_t best = upper + 1;
  const auto try_sizes = [&](const std::vector<uint64_t>& sizes) {
    for (uint32_t code = 0; code < uint32_t{1} << 2 * chunks; ++code) {
      Simulation simulation;
      simulation.in_flight = {1024, 1024};
      for (uint32_t k = 0; k < chunks; ++k) {
        test.model().append(chunk_of(test, sizes[k] * unit, code >> 2 * k), links, simulation);
      }
      best = std::min(best, BestSequence(simulation).find(best));
    }
  };
  for (uint64_t a = 1; a < units; ++a) {
    if (chunks == 2) {
      if (2 * a <= units) try_sizes({a, units - a});
      continue;
    }
    for (uint64_t b = a; a + 2 * b <= units; ++b) try_sizes({a, b, units - a - b});
  }
  return best;
}

TEST(Exhaustive, OptimumOfTinySystemsBesideWhatIsFound) {
  constexpr auto kSwitch = DimensionKind::kSwitch;
  const std::vector<std::array<uint64_t, 4>> systems = {{4, 4, 100, 100}, {4, 4, 200, 100},    {2, 8, 100, 200},
                                                        {8, 2, 400, 100}, {16, 64, 1200, 800}, {4, 4, 800, 100}};
  double worst = 1;
  for (const auto& [size1, size2, gbps1, gbps2] : systems) {
    Topology topology;
    topology.dimensions = {paper_dimension(static_cast<int32_t>(size1), kSwitch, gbps1, 700),
                           paper_dimension(static_cast<int32_t>(size2), kSwitch, gbps2, 1700)};
    for (const uint32_t chunks : {2u, 3u}) {
      static constexpr uint64_t kUnits = 12;
      PolicyCase test = paper_case(topology, uint64_t{48} << 20, chunks);
      const uint64_t unit = test.request().bytes / kUnits;
      ASSERT_EQ(unit * kUnits, test.request().bytes);
      test.cut(test.request().bytes, chunks, unit);
      const Portfolio found = plan_portfolio(test.request());
      const uint64_t optimum = exhaustive_optimum(test, chunks, unit, found.best.time_ticks);
      ASSERT_LE(optimum, found.best.time_ticks) << "what was found is not among all schedules";
      EXPECT_GE(optimum, found.bound_ticks);
      const double gap = static_cast<double>(found.best.time_ticks) / static_cast<double>(optimum);
      const double above = static_cast<double>(optimum) / static_cast<double>(found.bound_ticks);
      std::printf("%2dx%-2d %4d,%4d Gb/s, %u chunks: found %.4f of the optimum, which is %.4f of the fluid bound\n",
                  static_cast<int>(size1), static_cast<int>(size2), static_cast<int>(gbps1), static_cast<int>(gbps2),
                  chunks, gap, above);
      worst = std::max(worst, gap);
    }
  }
  EXPECT_LE(worst, 1.05);
}

}  // namespace
}  // namespace exhaustive_test
}  // namespace trestle
