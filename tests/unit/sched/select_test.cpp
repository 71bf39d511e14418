// Properties of every selected schedule: complete, exact, runnable, agreed, cheapest.
#include <gtest/gtest.h>

#include <set>

#include "algorithms/catalog.h"
#include "base/config/config_table.h"
#include "base/rng.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/policy/policies.h"
#include "sched/select/select.h"
#include "support/grids.h"

namespace trestle {
namespace select_test {
namespace {

Topology random_topology(Rng& rng) {
  Topology topology;
  for (uint64_t d = 0, n = 1 + rng.below(4); d < n; ++d) {
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = static_cast<int32_t>(2 + rng.below(4));
    dimension.kind = static_cast<DimensionKind>(rng.below(3));
    dimension.transport = static_cast<TransportKind>(rng.below(4));
    if (rng.below(2) != 0) dimension.bandwidth_mbps = 1 + rng.below(400'000);
    if (rng.below(2) != 0) dimension.latency_ns = 1 + rng.below(20'000);
    if (rng.below(4) == 0) dimension.shared_resource = "cpu";
    if (!dimension.shared_resource.empty()) dimension.shared_ps_per_byte = 1 + rng.below(500);
  }
  return topology;
}

SelectionRequest random_request(Rng& rng, const Topology& topology) {
  static constexpr Collective kAll[] = {Collective::kAllReduce,  Collective::kReduceScatter,  Collective::kAllGather,
                                        Collective::kBroadcast,  Collective::kReduce,         Collective::kAllToAll,
                                        Collective::kBarrier,    Collective::kGather,         Collective::kScatter,
                                        Collective::kAllGatherV, Collective::kReduceScatterV, Collective::kAllToAllV,
                                        Collective::kGatherV,    Collective::kScatterV};
  SelectionRequest request;
  request.collective = kAll[rng.below(std::size(kAll))];
  request.element_bytes = 1u << rng.below(4);
  uint64_t count = rng.below(uint64_t{1} << rng.below(26));
  if (request.collective == Collective::kBarrier || has_pairwise_blocks(request.collective)) count = 0;
  request.bytes = count * request.element_bytes;
  const bool whole = request.collective == Collective::kReduceScatter || request.collective == Collective::kAllGather ||
                     request.collective == Collective::kAllToAll || request.collective == Collective::kGather ||
                     request.collective == Collective::kScatter;
  if (whole) request.bytes *= static_cast<uint64_t>(topology.ranks());
  request.decoupled = request.collective == Collective::kAllReduce && rng.below(2) != 0;
  return request;
}

// Whether every reducing phase keeps rank order and the dimensions go from the innermost out, so that every sum is one
// of neighbouring ranks.
bool keeps_rank_order(const Schedule& schedule, const Topology& topology) {
  for (const ChunkSchedule& chunk : schedule.chunks) {
    int last = -1;
    for (const PhaseChoice& phase : chunk.phases) {
      if (!reduces(phase.kind)) continue;
      const Algorithm& row = algorithms()[phase.algorithm];
      if (!keeps_rank_order(row, phase.kind, group_size(topology, phase)) || phase.dimension <= last) return false;
      last = phase.dimension;
    }
  }
  return true;
}

// Starts phases in the agreed orders and completes the oldest one whenever none can start. Must never get stuck.
bool replays(const Schedule& schedule, uint32_t in_flight) {
  std::vector<uint32_t> stage(schedule.chunks.size(), 0);
  std::vector<size_t> head(schedule.orders.size(), 0);
  std::vector<std::vector<PhaseId>> active(schedule.orders.size());
  for (;;) {
    bool moved = false;
    bool done = true;
    for (size_t l = 0; l < schedule.orders.size(); ++l) {
      const DimensionOrder& order = schedule.orders[l];
      const uint32_t most = in_flight == 0 ? order.in_flight : in_flight;
      while (head[l] < order.order.size() && active[l].size() < most &&
             stage[order.order[head[l]].chunk] == order.order[head[l]].stage) {
        active[l].push_back(order.order[head[l]++]);
        moved = true;
      }
      if (head[l] < order.order.size() || !active[l].empty()) done = false;
    }
    if (done) return true;
    for (auto& running : active) {
      if (running.empty()) continue;
      ++stage[running.front().chunk];
      running.erase(running.begin());
      moved = true;
      break;
    }
    if (!moved) return false;
  }
}

void expect_sound(const Schedule& schedule, const SelectionRequest& request) {
  uint64_t sum = 0;
  std::set<std::tuple<uint8_t, uint32_t, uint32_t>> phases;
  for (uint32_t k = 0; k < schedule.chunks.size(); ++k) {
    sum += schedule.chunks[k].bytes;
    EXPECT_EQ(schedule.chunks[k].bytes % request.element_bytes, 0u);
    EXPECT_TRUE(schedule.chunks[k].bytes > 0 || schedule.chunks.size() == 1);
    EXPECT_FALSE(schedule.chunks[k].phases.empty());
    for (uint32_t s = 0; s < schedule.chunks[k].phases.size(); ++s) {
      phases.emplace(schedule.chunks[k].phases[s].dimension, k, s);
    }
  }
  EXPECT_EQ(sum, request.bytes);
  EXPECT_EQ(schedule.bytes, request.bytes);
  size_t ordered = 0;
  for (const DimensionOrder& order : schedule.orders) {
    EXPECT_GE(order.in_flight, 1u);
    EXPECT_LE(order.in_flight, order.order.size());
    for (const PhaseId& id : order.order) EXPECT_EQ(phases.erase({order.dimension, id.chunk, id.stage}), 1u);
    ordered += order.order.size();
  }
  EXPECT_TRUE(phases.empty());
  EXPECT_GT(ordered, 0u);
  EXPECT_TRUE(replays(schedule, 0));
  EXPECT_TRUE(replays(schedule, 1));
}

TEST(Select, SchedulesAreSoundAndAgreed) {
  Rng rng(11);
  for (int round = 0; round < 600; ++round) {
    const Topology topology = random_topology(rng);
    const SelectionRequest request = random_request(rng, topology);
    SelectionConfig config;
    if (rng.below(3) == 0) config.chunks = static_cast<uint32_t>(1 + rng.below(70));
    if (rng.below(3) == 0) config.in_flight = static_cast<uint32_t>(1 + rng.below(5));
    config.policy = policies()[rng.below(policies().size())].name;
    config.intra = rng.below(2) != 0 ? "scf" : "fifo";
    const auto selected = select_schedule(request, topology, config);
    ASSERT_TRUE(selected.ok()) << selected.error().message;
    const Schedule& schedule = selected.value();
    expect_sound(schedule, request);
    Topology explained_otherwise = topology;
    explained_otherwise.reason = "as another rank would say it";
    EXPECT_EQ(select_schedule(request, explained_otherwise, config).value(), schedule);
    EXPECT_EQ(hash(select_schedule(request, topology, config).value()), hash(schedule));
    if (config.in_flight != 0) {
      for (const DimensionOrder& order : schedule.orders) EXPECT_LE(order.in_flight, config.in_flight);
    }
    EXPECT_FALSE(to_string(schedule, topology).empty());
    if (HasFailure()) {
      ADD_FAILURE() << to_text(topology) << to_string(request.collective) << " " << to_string(schedule, topology);
      return;
    }
  }
}

TEST(Select, SeparatedHalvesNeverMixNorUseAllReduce) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const Topology topology = random_topology(rng);
    SelectionRequest request;
    request.bytes = rng.below(uint64_t{1} << rng.below(30));
    request.decoupled = true;
    const Schedule schedule = select_schedule(request, topology, {}).value();
    for (const ChunkSchedule& chunk : schedule.chunks) {
      ASSERT_EQ(chunk.phases.size() % 2, 0u);
      for (size_t s = 0; s < chunk.phases.size(); ++s) {
        ASSERT_EQ(chunk.phases[s].kind,
                  s < chunk.phases.size() / 2 ? PhaseKind::kReduceScatter : PhaseKind::kAllGather);
        ASSERT_EQ(chunk.phases[s].dimension, chunk.phases[chunk.phases.size() - 1 - s].dimension);
      }
    }
  }
}

TEST(Select, ChunkingAloneMakesNoSmallMessages) {
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const Topology topology = random_topology(rng);
    SelectionRequest request;
    request.bytes = rng.below(uint64_t{1} << rng.below(31));
    const Schedule schedule = select_schedule(request, topology, {}).value();
    if (schedule.chunks.size() == 1) continue;
    EXPECT_GE(request.bytes / schedule.chunks.size(), static_cast<uint64_t>(topology.ranks()) << 16);
    EXPECT_LE(schedule.chunks.size(), 64u);
  }
}

// The configurable names are the existing policies and rules.
TEST(Select, VariablesNameThePoliciesAndRules) {
  std::string names;
  for (const Policy& policy : policies()) names.append(names.empty() ? "" : ",").append(policy.name);
  std::string rules;
  for (const NamedRule& rule : priority_rules()) rules.append(rules.empty() ? "" : ",").append(rule.name);
  for (const Variable& row : kVariables) {
    const std::string_view name = row.name;
    if (name == "TRESTLE_SCHED" || name == "TRESTLE_INTRA") {
      EXPECT_EQ(row.choices, name == "TRESTLE_SCHED" ? names : rules) << name;
    }
  }
  SelectionConfig config;
  config.intra = "lifo";
  Topology topology;
  topology.dimensions.resize(1);
  topology.dimensions[0].size = 2;
  EXPECT_FALSE(validate(config, topology).ok());
  EXPECT_FALSE(select_schedule({}, topology, config).ok());
}

TEST(Select, FewElementsGetFewerChunksThanAskedForNotEmptyMessages) {
  Topology topology;
  topology.dimensions.resize(2);
  topology.dimensions[0].size = 4;
  topology.dimensions[1].size = 2;
  SelectionConfig config;
  config.chunks = 64;
  config.algo = "ring,direct";  // phases per dimension, however small
  for (const Policy& policy : policies()) {
    config.policy = policy.name;
    for (uint64_t elements = 8; elements < 3000; elements += 1 + elements / 7) {
      SelectionRequest request;
      request.bytes = elements * 4;
      request.element_bytes = 4;
      const Schedule schedule = select_schedule(request, topology, config).value();
      for (const ChunkSchedule& chunk : schedule.chunks) EXPECT_GE(chunk.bytes, 8u * 4) << elements << policy.name;
    }
  }
}

TEST(Select, ChunksAndInFlightAreOverridden) {
  Topology topology;
  topology.dimensions.resize(2);
  topology.dimensions[0].size = 4;
  topology.dimensions[1].size = 2;
  SelectionRequest request;
  request.bytes = 1 << 20;
  request.element_bytes = 4;
  SelectionConfig config;
  config.in_flight = 3;
  for (const uint32_t chunks : {1u, 2u, 5u, 64u, 1000u}) {
    config.chunks = chunks;
    const Schedule schedule = select_schedule(request, topology, config).value();
    EXPECT_EQ(schedule.chunks.size(), chunks);
    for (const DimensionOrder& order : schedule.orders) {
      EXPECT_EQ(order.in_flight, std::min<size_t>(3, order.order.size()));
    }
  }
}

TEST(Select, FreeChoiceIsNeverSlowerThanAForcedOne) {
  Rng rng(9);
  for (int round = 0; round < 400; ++round) {
    const Topology topology = random_topology(rng);
    const SelectionRequest request = random_request(rng, topology);
    const uint64_t free_ns = predict_ns(select_schedule(request, topology, {}).value(), topology);
    for (const Algorithm& row : algorithms()) {
      SelectionConfig config;
      config.algo = std::string(row.name);
      config.chunks = 1;
      const auto forced = select_schedule(request, topology, config);
      if (!forced.ok()) continue;
      EXPECT_LE(free_ns, predict_ns(forced.value(), topology)) << row.name << "\n" << to_text(topology);
    }
  }
}

TEST(Select, PoliciesPredictWhatPredictionSays) {
  Rng rng(10);
  for (int round = 0; round < 200; ++round) {
    const Topology topology = random_topology(rng);
    CostModel model(topology);
    AlgorithmChoice choice(nullptr, model);
    PolicyRequest request{choice, {}, rng.below(2) != 0, true, 0, {}, static_cast<uint32_t>(rng.below(4))};
    for (uint8_t d = 0; d < topology.dimensions.size(); ++d) request.dimensions.push_back(d);
    for (uint64_t k = 0, n = 1 + rng.below(20); k < n; ++k) request.chunk_bytes.push_back(rng.below(1 << 24));
    for (const uint64_t bytes : request.chunk_bytes) request.bytes += bytes;
    for (const Policy& policy : policies()) {
      const PlannedSchedule planned = policy.plan(request);
      EXPECT_EQ(predict_by_phases_ps(planned.schedule, topology), planned.time_ticks) << policy.name;
    }
  }
}

TEST(Select, SmallDataCrossesTheSlowDimensionOnce) {
  Topology topology;
  topology.dimensions.resize(2);
  topology.dimensions[0].size = 4;
  topology.dimensions[0].transport = TransportKind::kShm;
  topology.dimensions[1].size = 2;
  topology.dimensions[1].transport = TransportKind::kTcp;
  const auto first = [&](Collective collective, uint64_t bytes) {
    SelectionRequest request;
    request.collective = collective;
    request.bytes = bytes;
    request.element_bytes = 4;
    return select_schedule(request, topology, {}).value().chunks[0].phases;
  };
  for (const Collective collective : {Collective::kBroadcast, Collective::kBarrier}) {
    for (const uint64_t bytes : {0u, 8u, 4096u, 1u << 18}) {
      if (collective == Collective::kBarrier && bytes != 0) continue;
      const std::vector<PhaseChoice> phases = first(collective, bytes);
      ASSERT_EQ(phases.size(), 2u) << to_string(collective) << " " << bytes;
      EXPECT_EQ(phases[0].dimension, collective == Collective::kBroadcast ? 1 : 0);
    }
  }
  std::vector<PhaseChoice> phases = first(Collective::kAllReduce, 8);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].kind, PhaseKind::kAllReduce);
  EXPECT_EQ(phases[1].kind, PhaseKind::kAllReduce);
  phases = first(Collective::kAllReduce, 64 << 10);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[1].dimension, 1);
  EXPECT_EQ(phases[1].kind, PhaseKind::kAllReduce);
}

// Several senders that share one port of an Ethernet card lose time, so large data uses the ring.
// Four ranks in one dimension over tcp.
Topology one_network(uint64_t bandwidth_mbps, uint64_t latency_ns) {
  return grid_of({{4, bandwidth_mbps, latency_ns, TransportKind::kTcp}});
}

TEST(Select, LargeDataOverTcpTakesTheRing) {
  const Topology topology = one_network(100, 50'000);
  for (const auto& [bytes, name] : {std::pair<uint64_t, std::string_view>{16 << 20, "ring"}, {1 << 10, "direct"}}) {
    SelectionRequest request;
    request.collective = Collective::kReduceScatter;
    request.bytes = bytes;
    const Schedule schedule = select_schedule(request, topology, {}).value();
    EXPECT_EQ(algorithms()[schedule.chunks[0].phases[0].algorithm].name, name) << bytes;
  }
}

// A ring over all ranks and the same ring in chunks of two phases have equal predictions.
TEST(Select, TiesOnANetworkGoToFewPhases) {
  const Topology topology = one_network(1500, 15'000);
  SelectionRequest request;
  request.bytes = 4 << 20;
  const Schedule schedule = select_schedule(request, topology, {}).value();
  const auto candidates = selection_candidates(request, topology, {}).value();
  const auto chosen = std::ranges::find(candidates, true, &SelectionCandidate::chosen);
  ASSERT_NE(chosen, candidates.end());
  EXPECT_GT(std::ranges::count(candidates, chosen->time_ps, &SelectionCandidate::time_ps), 1) << "no tie";
  ASSERT_EQ(schedule.chunks.size(), 1u);
  ASSERT_EQ(schedule.chunks[0].phases.size(), 1u);
  EXPECT_EQ(algorithm_name(schedule.chunks[0].phases[0]), "ring");
}

// There chunks give the processors more to do.
TEST(Select, TiesWhereRanksShareProcessorsGoToSeveralChunks) {
  Topology topology = one_network(0, 35'000);
  Dimension& dimension = topology.dimensions.front();
  dimension.shared_resource = "processors";
  dimension.shared_ps_per_byte = 800;
  SelectionRequest request;
  request.bytes = 4 << 20;
  EXPECT_GT(select_schedule(request, topology, {}).value().chunks.size(), 1u);
  dimension.unknown_network = true;  // the network may be slower than they are
  EXPECT_EQ(select_schedule(request, topology, {}).value().chunks.size(), 1u);
}

TEST(Select, OneRankHasOneFlatPhase) {
  Topology topology;
  topology.dimensions.emplace_back();
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather, Collective::kBroadcast,
        Collective::kReduce, Collective::kAllToAll, Collective::kBarrier}) {
    SelectionRequest request;
    request.collective = collective;
    request.bytes = collective == Collective::kBarrier ? 0 : 4096;
    const Schedule schedule = select_schedule(request, topology, {}).value();
    expect_sound(schedule, request);
    ASSERT_EQ(schedule.chunks.size(), 1u);
    ASSERT_EQ(schedule.chunks[0].phases.size(), 1u) << to_string(collective);
    EXPECT_EQ(schedule.chunks[0].phases[0].dimension, kFlat);
    EXPECT_EQ(algorithms()[schedule.chunks[0].phases[0].algorithm].name, "direct");
    predict_ns(schedule, topology);
  }
}

TEST(Select, LargeAllReduceGoesOverTheDimensions) {
  Topology topology;
  topology.dimensions.resize(2);
  topology.dimensions[0].size = 4;
  topology.dimensions[0].transport = TransportKind::kShm;
  topology.dimensions[1].size = 2;
  topology.dimensions[1].transport = TransportKind::kTcp;
  SelectionRequest request;
  request.bytes = 64 << 20;
  request.element_bytes = 4;
  const Schedule schedule = select_schedule(request, topology, {}).value();
  EXPECT_GT(schedule.chunks.size(), 1u);
  ASSERT_GE(schedule.chunks[0].phases.size(), 3u);  // with 2 ranks an all-reduce phase is as fast as two halves
  EXPECT_EQ(schedule.chunks[0].phases[0].dimension, 0);
  EXPECT_EQ(schedule.chunks[0].phases[1].dimension, 1);
  const std::string text = to_string(schedule, topology);
  EXPECT_NE(text.find("reduce-scatter over dimension 1 of 4 by "), std::string::npos) << text;
}

TEST(Schedule, HashSeesEveryField) {
  Schedule base;
  base.bytes = 10;
  base.chunks = {{10, {{0, PhaseKind::kReduceScatter, 0}}}};
  base.orders = {{0, 1, {{0, 0}}}};
  std::set<uint64_t> hashes = {hash(base)};
  const auto changed = [&](auto change) {
    Schedule schedule = base;
    change(schedule);
    EXPECT_TRUE(hashes.insert(hash(schedule)).second);
  };
  changed([](Schedule& s) { s.bytes = 11; });
  changed([](Schedule& s) { s.chunks[0].bytes = 11; });
  changed([](Schedule& s) { s.chunks[0].phases[0].dimension = 1; });
  changed([](Schedule& s) { s.chunks[0].phases[0].kind = PhaseKind::kAllGather; });
  changed([](Schedule& s) { s.chunks[0].phases[0].algorithm = 1; });
  changed([](Schedule& s) { s.chunks.push_back(s.chunks[0]); });
  changed([](Schedule& s) { s.orders[0].dimension = 1; });
  changed([](Schedule& s) { s.orders[0].in_flight = 2; });
  changed([](Schedule& s) { s.orders[0].order[0].chunk = 1; });
  changed([](Schedule& s) { s.orders[0].order[0].stage = 1; });
  changed([](Schedule& s) { s.orders.clear(); });
}

// With every policy, data with a non-commutative operator is combined in rank order, or the call is refused.
TEST(RankOrder, IsKeptByWhatIsSelected) {
  Rng rng(4711);
  int several_dimensions = 0;
  for (int i = 0; i < 300; ++i) {
    const Topology topology = random_topology(rng);
    SelectionRequest request = random_request(rng, topology);
    if (!reduces(request.collective)) continue;
    request.rank_order = true;
    SelectionConfig config;
    config.policy = policies()[rng.below(policies().size())].name;
    const Result<Schedule> schedule = select_schedule(request, topology, config);
    ASSERT_TRUE(schedule.ok()) << schedule.error().message;
    EXPECT_TRUE(keeps_rank_order(schedule.value(), topology)) << to_string(schedule.value(), topology);
    several_dimensions += schedule.value().orders.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several_dimensions, 10);
}

// Pipelines of several hops are as fast as their busiest link, even on slow links, where segments are merged.
TEST(RankOrder, OfLargeReducesIsKeptWithoutSendingAllToTheRoot) {
  for (const int32_t ranks : {4, 8}) {
    Topology topology;
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = ranks;
    dimension.transport = TransportKind::kTcp;
    dimension.bandwidth_mbps = 200;
    SelectionRequest request{.collective = Collective::kReduce, .bytes = 16 << 20, .element_bytes = 4};
    request.rank_order = true;
    SelectionConfig config;
    config.algo = "*otree";
    const uint64_t twice_ns = request.bytes * 2 * 8 * 1000 / dimension.bandwidth_mbps;
    EXPECT_LT(predict_ns(select_schedule(request, topology, config).value(), topology), twice_ns * 5 / 4) << ranks;
    const Schedule schedule = select_schedule(request, topology, {}).value();
    EXPECT_NE(algorithm_name(schedule.chunks.front().phases.front()), "direct") << ranks;
    EXPECT_LT(predict_ns(schedule, topology), twice_ns * 5 / 4) << ranks;
  }
}

// A place that adds few sources at once gets algorithms that need no more, for any collective and on any dimensions.
TEST(FewSources, AreNotExceededByWhatIsSelected) {
  Rng rng(815);
  for (int i = 0; i < 60; ++i) {
    const Topology topology = random_topology(rng);
    SelectionRequest request = random_request(rng, topology);
    request.most_sources = kFewSources;
    SelectionConfig config;
    config.policy = policies()[rng.below(policies().size())].name;
    const Result<Schedule> schedule = select_schedule(request, topology, config);
    ASSERT_TRUE(schedule.ok()) << schedule.error().message;
    for (const ChunkSchedule& chunk : schedule.value().chunks) {
      for (const PhaseChoice& phase : chunk.phases) {
        EXPECT_LE(most_sources(algorithms()[phase.algorithm], phase.kind, group_size(topology, phase)), kFewSources)
            << to_string(schedule.value(), topology);
      }
    }
  }
}

TEST(RankOrder, RefusesWhatDoesNotKeepItWithThoseThatDo) {
  Topology topology;
  topology.dimensions.emplace_back().size = 4;
  SelectionRequest request{.collective = Collective::kReduceScatter, .bytes = 4096, .element_bytes = 4};
  request.rank_order = true;
  for (const char* algo : {"ring", "hd", "^direct,line"}) {
    SelectionConfig config;
    config.algo = algo;
    const Result<Schedule> schedule = select_schedule(request, topology, config);
    ASSERT_FALSE(schedule.ok()) << algo;
    EXPECT_NE(schedule.error().message.find("in rank order of 4 ranks; those that can: direct line"), std::string::npos)
        << schedule.error().message;
  }
}

}  // namespace
}  // namespace select_test
}  // namespace trestle
