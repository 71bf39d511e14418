// The places of data: units cut the vector without gaps or overlaps, shards stay with their ranks, and blocks have the
// right units.
#include "engine/prepare/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/engine/grids.h"

namespace trestle {
namespace layout_test {
namespace {

constexpr int kRounds = 400;
constexpr uint32_t kElementBytes[] = {1, 2, 4, 8};

struct Case {
  Topology topology;
  Schedule schedule;
  uint64_t elements = 0;
  uint32_t element_bytes = 1;
};

Case random_case(uint64_t seed) {
  Rng rng(seed);
  Case c;
  c.topology = random_grid(rng);
  c.element_bytes = kElementBytes[rng.below(4)];
  c.elements = rng.below(3) == 0 ? rng.below(40) : rng.below(200'000);
  c.schedule = random_schedule(c.topology, c.elements * c.element_bytes, rng);
  return c;
}

std::vector<ElementRange> units_of(const Case& c, uint32_t chunk, ChunkCut cut) {
  return chunk_units(c.schedule, chunk, c.topology, c.elements, c.element_bytes, cut);
}

// Whether the non-empty ranges are [offset, offset + count) without gaps or overlaps.
::testing::AssertionResult covers(std::vector<ElementRange> ranges, uint64_t offset, uint64_t count) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  uint64_t at = offset;
  for (const ElementRange& range : ranges) {
    if (range.count == 0) continue;
    if (range.offset != at) return ::testing::AssertionFailure() << "gap or overlap at " << at;
    at += range.count;
  }
  if (at != offset + count) return ::testing::AssertionFailure() << "ends at " << at << ", not " << offset + count;
  return ::testing::AssertionSuccess();
}

TEST(PartOfUnits, CutsTheUnitsDataInOrder) {
  const std::vector<ElementRange> units = {{100, 3}, {50, 0}, {200, 4}, {7, 1}};
  const std::vector<int32_t> block = {2, 0, 1, 3};
  for (uint32_t parts = 1; parts <= 9; ++parts) {
    std::vector<std::pair<int32_t, uint64_t>> elements;  // in order
    for (uint32_t part = 0; part < parts; ++part) {
      uint64_t length = 0;
      for (const UnitRange& piece : part_of_units(block, units, parts, part)) {
        EXPECT_GT(piece.range.count, 0u);
        length += piece.range.count;
        for (uint64_t i = 0; i < piece.range.count; ++i) elements.emplace_back(piece.unit, piece.range.offset + i);
      }
      EXPECT_EQ(length, nth_range(8, parts, part).count);
    }
    std::vector<std::pair<int32_t, uint64_t>> expected;
    for (const int32_t unit : block) {
      const ElementRange& range = units[static_cast<size_t>(unit)];
      for (uint64_t i = 0; i < range.count; ++i) expected.emplace_back(unit, range.offset + i);
    }
    EXPECT_EQ(elements, expected) << parts;
  }
}

TEST(NthRange, CutsWithoutGapsLongerOnesFirst) {
  for (uint64_t elements : {0u, 1u, 7u, 8u, 1000u}) {
    for (uint32_t n = 1; n <= 9; ++n) {
      uint64_t at = 0;
      uint64_t before = UINT64_MAX;
      for (uint32_t r = 0; r < n; ++r) {
        const ElementRange range = nth_range(elements, n, r);
        EXPECT_EQ(range.offset, at);
        EXPECT_LE(range.count, before);
        EXPECT_GE(range.count, elements / n);
        before = range.count;
        at += range.count;
      }
      EXPECT_EQ(at, elements);
    }
  }
}

TEST(Units, OfAllChunksPartitionTheVector) {
  for (int seed = 0; seed < kRounds; ++seed) {
    const Case c = random_case(seed);
    for (ChunkCut cut : {ChunkCut::kCanonical, ChunkCut::kContiguous}) {
      std::vector<ElementRange> all;
      for (uint32_t k = 0; k < c.schedule.chunks.size(); ++k) {
        const auto units = units_of(c, k, cut);
        ASSERT_EQ(units.size(), static_cast<size_t>(c.topology.ranks()));
        all.insert(all.end(), units.begin(), units.end());
      }
      ASSERT_TRUE(covers(all, 0, c.elements)) << "seed " << seed << " cut " << static_cast<int>(cut);
    }
  }
}

TEST(Units, OfTheCanonicalCutLieInTheirRanksShard) {
  for (int seed = 0; seed < kRounds; ++seed) {
    const Case c = random_case(seed);
    for (int32_t r = 0; r < c.topology.ranks(); ++r) {
      std::vector<ElementRange> slices;
      for (uint32_t k = 0; k < c.schedule.chunks.size(); ++k) {
        slices.push_back(units_of(c, k, ChunkCut::kCanonical)[r]);
      }
      const ElementRange shard = nth_range(c.elements, c.topology.ranks(), r);
      ASSERT_TRUE(covers(slices, shard.offset, shard.count)) << "seed " << seed << " rank " << r;
    }
  }
}

TEST(Units, OfAContiguousChunkAreOnePieceForEveryBlockOfItsPhases) {
  for (int seed = 0; seed < kRounds; ++seed) {
    const Case c = random_case(seed);
    for (uint32_t k = 0; k < c.schedule.chunks.size(); ++k) {
      const auto units = units_of(c, k, ChunkCut::kContiguous);
      const int32_t rank = seed % c.topology.ranks();
      uint32_t done = 0;
      for (const PhaseChoice& phase : c.schedule.chunks[k].phases) {
        if (phase.kind != PhaseKind::kReduceScatter) break;
        for (int32_t j = 0; j < c.topology.group_size(phase.dimension); ++j) {
          std::vector<ElementRange> block;
          uint64_t count = 0;
          uint64_t first = UINT64_MAX;
          for (int32_t unit : block_units(c.topology, rank, phase.dimension, done, j)) {
            block.push_back(units[unit]);
            count += units[unit].count;
            if (units[unit].count != 0) first = std::min(first, units[unit].offset);
          }
          ASSERT_TRUE(covers(block, count == 0 ? 0 : first, count)) << "seed " << seed << " chunk " << k;
        }
        done |= 1u << phase.dimension;
      }
    }
  }
}

TEST(Units, BeginOnCacheLinesWhereThereIsEnough) {
  for (int seed = 0; seed < kRounds; ++seed) {
    const Case c = random_case(seed);
    const uint64_t line = 64 / c.element_bytes;
    const uint64_t chunks = c.schedule.chunks.size();
    const uint64_t ranks = c.topology.ranks();
    for (uint32_t k = 0; k < chunks; ++k) {
      if (c.elements >= 4 * line * chunks) {
        uint64_t begin = UINT64_MAX;
        for (const ElementRange& unit : units_of(c, k, ChunkCut::kContiguous)) {
          if (unit.count != 0) begin = std::min(begin, unit.offset);
        }
        ASSERT_TRUE(begin == UINT64_MAX || begin % line == 0) << "seed " << seed << " chunk " << k;
      }
      for (uint32_t r = 0; r < ranks; ++r) {
        const ElementRange shard = nth_range(c.elements, static_cast<uint32_t>(ranks), r);
        const ElementRange unit = units_of(c, k, ChunkCut::kCanonical)[r];
        if (shard.count < 4 * line * chunks || unit.count == 0) continue;
        ASSERT_EQ((unit.offset - shard.offset) % line, 0u) << "seed " << seed << " chunk " << k << " rank " << r;
      }
    }
  }
}

TEST(BlockUnits, PartitionTheRanksThatShareWhatIsSplit) {
  for (int seed = 0; seed < kRounds; ++seed) {
    Rng rng(seed);
    const Topology topology = random_grid(rng);
    const auto rank = static_cast<int32_t>(rng.below(topology.ranks()));
    const auto dimension = static_cast<uint8_t>(rng.below(topology.dimensions.size()));
    const auto done = static_cast<uint32_t>(rng.below(1u << topology.dimensions.size())) & ~(1u << dimension);
    std::set<int32_t> expected;
    for (int32_t r = 0; r < topology.ranks(); ++r) {
      bool shares = true;
      for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
        if ((done >> d & 1u) != 0) shares &= topology.coordinate(r, d) == topology.coordinate(rank, d);
      }
      if (shares) expected.insert(r);
    }
    std::set<int32_t> found;
    for (int32_t j = 0; j < topology.group_size(dimension); ++j) {
      int32_t before = -1;
      for (int32_t unit : block_units(topology, rank, dimension, done, j)) {
        EXPECT_EQ(topology.coordinate(unit, dimension), j);
        EXPECT_GT(unit, before) << "not ascending";
        before = unit;
        EXPECT_TRUE(found.insert(unit).second) << "unit " << unit << " is in two blocks";
      }
    }
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(BlockUnits, OfAFlatPhaseAreTheRanks) {
  const Topology topology = engine_grid({3, 2});
  for (int32_t j = 0; j < 6; ++j) EXPECT_EQ(block_units(topology, 4, kFlat, 0, j), std::vector<int32_t>{j});
}

}  // namespace
}  // namespace layout_test
}  // namespace trestle
