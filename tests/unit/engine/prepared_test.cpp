// Prepared operations: their pieces cover the data that the collective reads and writes, their dependencies stay inside
// their steps, staging memory is used once, and both ends cut every message alike.
#include "engine/prepare/prepared.h"
#include "engine/prepare/call_bytes.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sched/select/select.h"
#include "transport/transport.h"
#include "unit/engine/grids.h"

namespace trestle {
namespace prepared_test {
namespace {

constexpr uint64_t kSegmentBytes = 4096;

uint64_t preferred_segment(const void*, const std::vector<int32_t>&) {
  return kSegmentBytes;
}

Schedule select(const PrepareRequest& request, const Topology& topology, uint32_t chunks) {
  SelectionRequest selection;
  selection.collective = request.collective;
  selection.element_bytes = static_cast<uint32_t>(size_of(request.type));
  selection.bytes = vector_elements(request, topology.ranks()) * selection.element_bytes;
  selection.root = request.root;
  selection.decoupled = request.half;
  SelectionConfig config;
  config.chunks = chunks;
  auto schedule = select_schedule(selection, topology, config);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

std::shared_ptr<const Prepared> prepare_on(const PrepareRequest& request, const Schedule& schedule,
                                           const Topology& topology, int32_t rank) {
  const PrepareContext context{&topology, rank, false, &preferred_segment, nullptr};
  auto prepared = prepare(request, schedule, context);
  EXPECT_TRUE(prepared.ok()) << (prepared.ok() ? "" : prepared.error().message);
  return std::move(prepared).value();
}

struct Interval {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Whether the non-empty intervals are [0, bytes) without gaps or overlaps.
::testing::AssertionResult exactly(std::vector<Interval> intervals, uint64_t bytes) {
  std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  uint64_t at = 0;
  for (const Interval& interval : intervals) {
    if (interval.begin == interval.end) continue;
    if (interval.begin != at) return ::testing::AssertionFailure() << "gap or overlap at byte " << at;
    at = interval.end;
  }
  if (at != bytes) return ::testing::AssertionFailure() << at << " bytes instead of " << bytes;
  return ::testing::AssertionSuccess();
}

// The parts of the send buffer that all first phases read, or of the receive buffer that all last phases write.
std::vector<Interval> pieces_of(const Prepared& prepared, bool reading) {
  std::vector<Interval> intervals;
  for (const auto& chunk : prepared.phases) {
    if (chunk.empty()) continue;
    const BlockTable& table = reading ? chunk.front().input : chunk.back().output;
    for (const PieceRef& piece : table.pieces) {
      EXPECT_EQ(piece.buffer, reading ? BufferId::kSend : BufferId::kRecv);
      intervals.push_back({piece.offset, piece.offset + piece.bytes});
    }
  }
  return intervals;
}

// The logical block of input (output) block `index`, by the table in plan.h.
uint32_t logical_of(const Plan& plan, uint32_t index, bool input) {
  const PhaseKind kind = with_known_blocks(plan.kind);
  const bool own = input ? kind == PhaseKind::kAllGather || kind == PhaseKind::kGather
                         : kind == PhaseKind::kReduceScatter || kind == PhaseKind::kScatter;
  return own ? static_cast<uint32_t>(plan.me) ^ plan.turned : index;
}

void check_block_lengths(const PreparedPhase& phase) {
  for (bool input : {true, false}) {
    const BlockTable& table = input ? phase.input : phase.output;
    const uint32_t blocks = input ? input_blocks(*phase.plan) : output_blocks(*phase.plan);
    if (blocks == 0) continue;
    ASSERT_EQ(table.first.size(), blocks + 1) << "input " << input;
    for (uint32_t b = 0; b < blocks; ++b) {
      uint64_t bytes = 0;
      for (uint32_t i = table.first[b]; i < table.first[b + 1]; ++i) bytes += table.pieces[i].bytes;
      const bool received = !input && !phase.received_bytes.empty();
      const uint64_t known =
          received ? phase.received_bytes.at(b) : phase.logical_bytes.at(logical_of(*phase.plan, b, input));
      EXPECT_EQ(bytes, known) << "block " << b;
    }
  }
}

// alike: all blocks have the same length, except for one element.
void check_dependencies(const PreparedPhase& phase, bool alike) {
  ASSERT_EQ(phase.step_bytes.size(), phase.plan->steps.size());
  ASSERT_EQ(phase.dependencies.size(), phase.plan->dependencies.size());
  for (uint32_t s = 0; s < phase.plan->steps.size(); ++s) {
    const Step& step = phase.plan->steps[s];
    for (uint32_t d = 0; d < step.dependencies; ++d) {
      const ByteDependency& dependency = phase.dependencies[step.first_dependency + d];
      EXPECT_LT(dependency.step, s) << "a step waits for one that comes later";
      EXPECT_LE(dependency.my_begin, dependency.my_end);
      EXPECT_LE(dependency.my_end, phase.step_bytes[s]);
      // If scratch held a shorter block, all of it is free when that block's step is complete.
      if (alike) {
        EXPECT_LE(dependency.its_begin + dependency.my_end - dependency.my_begin, phase.step_bytes.at(dependency.step));
      }
      EXPECT_LE(dependency.its_begin, phase.step_bytes.at(dependency.step));
    }
  }
}

// The scratch of every phase and the results between phases are inside staging and do not overlap.
void check_staging(const Prepared& prepared) {
  std::map<uint64_t, uint64_t> taken;  // begin -> end
  const auto take = [&](uint64_t begin, uint64_t end) {
    if (begin == end) return;
    EXPECT_LE(end, prepared.staging_bytes);
    const auto next = taken.lower_bound(begin);
    EXPECT_TRUE(next == taken.end() || end <= next->first) << "staging is used twice";
    EXPECT_TRUE(next == taken.begin() || std::prev(next)->second <= begin) << "staging is used twice";
    taken[begin] = end;
  };
  for (const auto& chunk : prepared.phases) {
    for (const PreparedPhase& phase : chunk) {
      EXPECT_EQ(phase.scratch_offset % 64, 0u);
      take(phase.scratch_offset, phase.scratch_offset + phase.scratch_stride * phase.plan->scratch);
      for (uint64_t bytes : phase.logical_bytes) EXPECT_LE(bytes, phase.scratch_stride);
      for (const PieceRef& piece : phase.output.pieces) {
        if (piece.buffer == BufferId::kStaging) take(piece.offset, piece.offset + piece.bytes);
      }
    }
  }
}

// The byte positions in a step's operand at which new pieces begin.
std::vector<uint64_t> piece_starts(const PreparedPhase& phase, const BlockRange& range, uint32_t logical_first) {
  std::vector<uint64_t> starts;
  uint64_t at = 0;
  for (uint32_t i = 0; i < range.count; ++i) {
    if (range.space == Space::kScratch) {
      if (phase.logical_bytes[logical_first + i] != 0) starts.push_back(at);
      at += phase.logical_bytes[logical_first + i];
      continue;
    }
    const BlockTable& table = range.space == Space::kInput ? phase.input : phase.output;
    for (uint32_t p = table.first[range.first + i]; p < table.first[range.first + i + 1]; ++p) {
      starts.push_back(at);
      at += table.pieces[p].bytes;
    }
  }
  return starts;
}

void check_pieces_per_segment(const PreparedPhase& phase) {
  for (uint32_t s = 0; s < phase.plan->steps.size(); ++s) {
    const Step& step = phase.plan->steps[s];
    if (step.kind != StepKind::kSend && step.kind != StepKind::kRecv) continue;
    const BlockRange& range =
        step.kind == StepKind::kRecv ? step.destination : phase.plan->sources[step.first_source].blocks;
    // By segment: the pieces that begin in it, and the one that continues into it.
    std::map<uint64_t, size_t> pieces;
    for (uint64_t at : piece_starts(phase, range, step.logical_first)) ++pieces[at / phase.segment_bytes];
    for (const auto& [segment, count] : pieces) EXPECT_LE(count + 1, kMaxPieces) << "segment " << segment;
  }
}

void check_phases(const Prepared& prepared, bool alike = true) {
  for (const auto& chunk : prepared.phases) {
    EXPECT_LE(chunk.size(), prepared.stages);
    for (const PreparedPhase& phase : chunk) {
      check_block_lengths(phase);
      check_dependencies(phase, alike);
      check_pieces_per_segment(phase);
      EXPECT_EQ(phase.segment_bytes % 64, 0u);
      EXPECT_GT(phase.segment_bytes, 0u);
    }
  }
  check_staging(prepared);
}

// Every piece of the two buffers lies inside what the call says it may touch there.
void check_reach(const Prepared& prepared, const PrepareRequest& request, bool sending, int32_t rank) {
  const CallBytes reach = reach_of(request, sending, rank, prepared.ranks);
  const auto check = [&](const BlockTable& table) {
    for (const PieceRef& piece : table.pieces) {
      if (piece.buffer == BufferId::kStaging) continue;
      EXPECT_LE(piece.offset + piece.bytes, piece.buffer == BufferId::kSend ? reach.given : reach.taken);
    }
  };
  for (const auto& chunk : prepared.phases) {
    for (const PreparedPhase& phase : chunk) {
      check(phase.input);
      check(phase.output);
    }
  }
}

struct Sides {
  uint64_t reads = 0;
  uint64_t writes = 0;
};

// The bytes of the send buffer that a rank's first phases read, and of the receive buffer that its last phases write.
Sides sides_of(const PrepareRequest& request, const Topology& topology, int32_t rank) {
  const uint64_t element = size_of(request.type);
  const uint64_t all = vector_elements(request, topology.ranks()) * element;
  const uint64_t own = request.count * element;
  const bool root = rank == request.root;
  switch (request.collective) {
    case Collective::kReduceScatter:
      return {all, own};
    case Collective::kAllGather:
      return {own, all};
    case Collective::kBroadcast:
      return {root ? all : 0, all};
    case Collective::kReduce:
      return {all, root ? all : 0};
    case Collective::kGather:
      return {own, root ? all : 0};
    case Collective::kScatter:
      return {root ? all : 0, own};
    default:
      break;
  }
  if (!request.blocks) return {all, all};
  const auto sum = [&](const BlockList& list) {
    return std::accumulate(list.counts.begin(), list.counts.end(), uint64_t{0}) * element;
  };
  const uint64_t one = has_known_blocks(request.collective)
                           ? known_blocks(*request.blocks, request.collective).counts.at(rank) * element
                           : own;
  const UnevenBlocks& blocks = *request.blocks;
  const uint64_t sent = request.collective == Collective::kScatterV ? 0 : one;
  const uint64_t received = request.collective == Collective::kGatherV ? 0 : one;
  return {blocks.sent.counts.empty() ? sent : sum(blocks.sent),
          blocks.received.counts.empty() ? received : sum(blocks.received)};
}

BlockList packed(const std::vector<uint64_t>& counts) {
  BlockList list{counts, {}};
  for (const ElementRange& range : consecutive_ranges(counts)) list.starts.push_back(range.offset);
  return list;
}

// One rank's request for a v-variant with seeded counts, some of them 0.
PrepareRequest uneven_request(Collective collective, int32_t rank, int32_t ranks, int32_t root, uint64_t seed) {
  const auto n = static_cast<size_t>(ranks);
  const auto count = [&](size_t from, size_t to) {
    Rng rng(seed * 10'000 + from * 100 + to);
    return rng.below(3) == 0 ? 0 : rng.below(rng.below(4) == 0 ? 100'000 : 50);
  };
  const auto counts = [&](auto&& of) {
    std::vector<uint64_t> list;
    for (size_t r = 0; r < n; ++r) list.push_back(of(r));
    return packed(list);
  };
  const auto me = static_cast<size_t>(rank);
  UnevenBlocks blocks;
  const auto of_rank = [&](size_t r) { return count(r, 0); };
  if (collective == Collective::kAllGatherV || (collective == Collective::kGatherV && rank == root))
    blocks.received = counts(of_rank);
  if (collective == Collective::kReduceScatterV || (collective == Collective::kScatterV && rank == root))
    blocks.sent = counts(of_rank);
  if (collective == Collective::kAllToAllV) {
    blocks.sent = counts([&](size_t r) { return count(me, r); });
    blocks.received = counts([&](size_t r) { return count(r, me); });
  }
  PrepareRequest request;
  request.collective = collective;
  request.root = root;
  request.count = of_rank(me);
  if (has_known_blocks(collective)) {
    const BlockList& all = known_blocks(blocks, collective);
    request.count = std::accumulate(all.counts.begin(), all.counts.end(), uint64_t{0});
  }
  request.blocks = SharedBlocks(std::move(blocks));
  return request;
}

constexpr Collective kCollectivesHere[] = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                           Collective::kBroadcast, Collective::kReduce,        Collective::kAllToAll,
                                           Collective::kGather,    Collective::kScatter};

void check_everywhere(const PrepareRequest& request, const Topology& topology, uint32_t chunks) {
  const Schedule schedule = select(request, topology, chunks);
  for (int32_t rank = 0; rank < topology.ranks(); ++rank) {
    const auto prepared = prepare_on(request, schedule, topology, rank);
    SCOPED_TRACE(to_string(*prepared) + ", rank " + std::to_string(rank) + " of " + std::to_string(topology.ranks()));
    const Sides sides = sides_of(request, topology, rank);
    EXPECT_TRUE(exactly(pieces_of(*prepared, true), sides.reads));
    EXPECT_TRUE(exactly(pieces_of(*prepared, false), sides.writes));
    check_phases(*prepared);
    check_reach(*prepared, request, false, rank);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Prepared, CoversWhatTheCollectiveReadsAndWrites) {
  for (int seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const Topology topology = random_grid(rng);
    for (Collective collective : kCollectivesHere) {
      PrepareRequest request;
      request.collective = collective;
      request.count = rng.below(4) == 0 ? rng.below(5) : rng.below(3000);
      request.type = rng.below(2) == 0 ? DataType::kFloat32 : DataType::kInt8;
      request.root = static_cast<int32_t>(rng.below(topology.ranks()));
      check_everywhere(request, topology, static_cast<uint32_t>(rng.below(4)));
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
  }
}

TEST(Prepared, CoversBlocksOfUnequalLengths) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    const Topology topology = random_grid(rng);
    const int32_t ranks = topology.ranks();
    for (Collective collective : {Collective::kAllGatherV, Collective::kReduceScatterV, Collective::kAllToAllV,
                                  Collective::kGatherV, Collective::kScatterV}) {
      const auto root = static_cast<int32_t>(rng.below(ranks));
      const PrepareRequest first = uneven_request(collective, 0, ranks, root, seed);
      const Schedule schedule = select(first, topology, static_cast<uint32_t>(rng.below(4)));
      uint64_t check = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const PrepareRequest request = uneven_request(collective, rank, ranks, root, seed);
        const auto prepared = prepare_on(request, schedule, topology, rank);
        SCOPED_TRACE(to_string(*prepared) + ", rank " + std::to_string(rank) + " of " + std::to_string(ranks));
        const Sides sides = sides_of(request, topology, rank);
        EXPECT_TRUE(exactly(pieces_of(*prepared, true), sides.reads));
        EXPECT_TRUE(exactly(pieces_of(*prepared, false), sides.writes));
        check_phases(*prepared, false);
        check_reach(*prepared, request, false, rank);
        if (rank == 0) check = prepared->check;
        EXPECT_EQ(prepared->check, check) << "what only two ranks know must not be compared by all";
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
      }
    }
  }
}

TEST(Prepared, CountsThatAllKnowAreCompared) {
  Topology topology;
  topology.dimensions.emplace_back();
  topology.dimensions[0].size = 3;
  PrepareRequest request = uneven_request(Collective::kAllGatherV, 0, 3, 0, 1);
  request.blocks = SharedBlocks({{}, packed({1, 2, 3})});
  request.count = 6;
  PrepareRequest other = request;
  other.blocks = SharedBlocks({{}, packed({3, 2, 1})});
  const Schedule schedule = select(request, topology, 1);
  EXPECT_NE(prepare_on(request, schedule, topology, 0)->check, prepare_on(other, schedule, topology, 0)->check);
  other.blocks = SharedBlocks({{}, {{1, 2, 3}, {5, 0, 2}}});
  EXPECT_EQ(prepare_on(request, schedule, topology, 0)->check, prepare_on(other, schedule, topology, 0)->check)
      << "displacements are everybody's own";
}

// A separated all-reduce: both halves use the receive buffer, whose shards are the canonical ranges.
TEST(Prepared, HalvesMeetInTheShardOfTheReceiveBuffer) {
  for (int seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const Topology topology = random_grid(rng);
    PrepareRequest scatter;
    scatter.collective = Collective::kReduceScatter;
    scatter.half = true;
    scatter.count = rng.below(3000);
    PrepareRequest gather = scatter;
    gather.collective = Collective::kAllGather;
    const Schedule scatter_schedule = select(scatter, topology, 2);
    const Schedule gather_schedule = select(gather, topology, 3);
    for (int32_t rank = 0; rank < topology.ranks(); ++rank) {
      const ElementRange shard = nth_range(scatter.count, topology.ranks(), rank);
      const auto shifted = [&](std::vector<Interval> intervals) {
        for (Interval& interval : intervals) {
          interval.begin -= shard.offset * 4;
          interval.end -= shard.offset * 4;
        }
        return intervals;
      };
      const auto first = prepare_on(scatter, scatter_schedule, topology, rank);
      EXPECT_TRUE(exactly(pieces_of(*first, true), scatter.count * 4));
      EXPECT_TRUE(exactly(shifted(pieces_of(*first, false)), shard.count * 4)) << "seed " << seed << " rank " << rank;
      check_phases(*first);
      check_reach(*first, scatter, false, rank);
      const auto second = prepare_on(gather, gather_schedule, topology, rank);
      EXPECT_TRUE(exactly(pieces_of(*second, false), scatter.count * 4));
      std::vector<Interval> inputs;
      for (const auto& chunk : second->phases) {
        for (const PieceRef& piece : chunk.front().input.pieces) {
          EXPECT_EQ(piece.buffer, BufferId::kRecv);
          inputs.push_back({piece.offset, piece.offset + piece.bytes});
        }
      }
      EXPECT_TRUE(exactly(shifted(inputs), shard.count * 4)) << "seed " << seed << " rank " << rank;
      check_phases(*second);
      check_reach(*second, gather, false, rank);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << " rank " << rank;
    }
  }
}

// A message has fewer pieces than there are units. Segments become smaller, equally for all ranks of a group.
TEST(Prepared, SegmentsOfAGroupAreEqualWhereDataIsScattered) {
  for (const auto& sizes : {std::vector<int32_t>{16, 12}, std::vector<int32_t>{7, 5, 6}, std::vector<int32_t>{300}}) {
    const Topology topology = engine_grid(sizes);
    for (uint64_t count : {1u, 37u, 700u}) {
      PrepareRequest request;
      request.collective = Collective::kReduceScatter;
      request.count = count;
      const Schedule schedule = select(request, topology, 3);
      std::map<std::vector<int32_t>, std::vector<uint64_t>> segments;  // group -> by chunk and stage
      for (int32_t rank = 0; rank < topology.ranks(); rank += sizes.size() == 1 ? 50 : 1) {
        const auto prepared = prepare_on(request, schedule, topology, rank);
        for (size_t k = 0; k < prepared->phases.size(); ++k) {
          for (size_t s = 0; s < prepared->phases[k].size(); ++s) {
            const PreparedPhase& phase = prepared->phases[k][s];
            std::vector<int32_t> key = phase.peers;
            key.insert(key.end(), {static_cast<int32_t>(k), static_cast<int32_t>(s)});
            const std::vector<uint64_t> cut = {phase.segment_bytes};
            EXPECT_EQ(segments.emplace(key, cut).first->second, cut) << "rank " << rank << " cuts another way";
            check_pieces_per_segment(phase);
          }
        }
        ASSERT_FALSE(HasFailure()) << "rank " << rank << " of " << topology.ranks() << ", count " << count;
      }
    }
  }
}

TEST(Prepared, PointToPointIsOnePhaseOfBothEnds) {
  const Topology topology = engine_grid({3});
  PrepareRequest request;
  request.collective = Collective::kSendRecv;
  request.count = 1001;
  request.peer = 2;
  const PrepareContext context{&topology, 1, true, &preferred_segment, nullptr};
  for (bool sending : {true, false}) {
    auto prepared = prepare_point_to_point(request, sending, context);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    const auto& operation = *prepared.value();
    EXPECT_TRUE(exactly(pieces_of(operation, sending), 4004));
    check_phases(operation);
    check_reach(operation, request, sending, 1);
    const std::vector<int32_t> peers = sending ? std::vector<int32_t>{1, 2} : std::vector<int32_t>{2, 1};
    EXPECT_EQ(operation.phases[0][0].peers, peers);
  }
}

TEST(Prepared, TheWindowIsThatOfTheGroup) {
  const Topology topology = engine_grid({4, 2});
  PrepareContext context{&topology, 5, false, &preferred_segment, nullptr};
  PrepareRequest request;
  request.count = 100'000;
  EXPECT_EQ(prepare(request, select(request, topology, 1), context).value()->phases[0][0].segments_in_flight, 4u);
  context.in_flight = [](const void*, const std::vector<int32_t>& group) {
    return static_cast<uint32_t>(group.size());
  };
  const auto prepared = prepare(request, select(request, topology, 1), context).value();
  for (const PreparedPhase& phase : prepared->phases[0]) EXPECT_EQ(phase.segments_in_flight, phase.peers.size());
}

// Plans do not depend on counts. Two calls, and the chunks of one call, share them. Other roots and placements need
// others.
TEST(Plans, AreSharedByCallsOfAnyCount) {
  const Topology topology = engine_grid({4, 2});
  PlanCache plans;
  const PrepareContext context{&topology, 5, false, &preferred_segment, nullptr, &plans};
  PrepareRequest request;
  request.count = 100'000;
  const auto first = prepare(request, select(request, topology, 4), context).value();
  const size_t planned = plans.size();
  request.count = 100'064;
  const auto second = prepare(request, select(request, topology, 4), context).value();
  EXPECT_EQ(plans.size(), planned);
  size_t phases = 0;
  for (size_t chunk = 0; chunk < first->phases.size(); ++chunk) {
    for (size_t stage = 0; stage < first->phases[chunk].size(); ++stage, ++phases) {
      EXPECT_EQ(first->phases[chunk][stage].plan, second->phases[chunk][stage].plan);
    }
  }
  EXPECT_LT(planned, phases) << "chunks share plans too";
  request.in_place = true;
  EXPECT_TRUE(prepare(request, select(request, topology, 4), context).ok());
  EXPECT_GT(plans.size(), planned);
}

}  // namespace
}  // namespace prepared_test
}  // namespace trestle
