// Every collective over every way through the dimensions, on the engine over simulated links. Results are exact for all
// roots, sizes and buffer placements. Nothing is written outside the caller's result.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "engine/prepare/layout.h"
#include "tests/sim/jobs.h"

namespace trestle {
namespace dimensions_test {
namespace {

struct Case {
  Collective collective;
  size_t count;
  int32_t root;
  bool in_place;
  ReduceOp op = ReduceOp::kSum;
};

constexpr uint64_t kMostJitterNs = 20'000;

// Small whole numbers, whose sums are exact in any order.
float input_of(int32_t rank, size_t element) {
  return static_cast<float>((static_cast<size_t>(rank) * 31 + element * 7) % 61) - 30;
}

// The buffers of one rank in one piece of memory: send, then receive. In place they overlap.
class Memory {
 public:
  Memory(const Case& c, int32_t rank, int32_t ranks) : case_(c), rank_(rank), ranks_(ranks) {
    const size_t all = c.count * static_cast<size_t>(ranks);
    const Collective kind = c.collective;
    sent_ = kind == Collective::kReduceScatter || kind == Collective::kAllToAll ? all : c.count;
    received_ = kind == Collective::kAllGather || kind == Collective::kAllToAll ? all : c.count;
    sends_ = kind != Collective::kBroadcast || rank == c.root;
    receives_ = kind != Collective::kReduce || rank == c.root;
    const size_t own = c.count * static_cast<size_t>(rank);
    recv_at_ = c.in_place ? (kind == Collective::kReduceScatter ? own : 0) : sent_;
    send_at_ = c.in_place && kind == Collective::kAllGather ? own : 0;
    memory_.assign(std::max(send_at_ + sent_, recv_at_ + received_), -777.0f);
    if (sends_) {
      for (size_t i = 0; i < sent_; ++i) memory_[send_at_ + i] = input_of(rank, i);
    }
    expected_ = memory_;
    // In place, a reduce-scatter may overwrite the rest of the send buffer.
    if (receives_) {
      for (size_t i = 0; i < received_; ++i) expected_[recv_at_ + i] = result(i);
    }
  }

  SimBuffers buffers() {
    // A rank has no buffer that it does not need.
    return {sends_ || case_.in_place ? memory_.data() + send_at_ : nullptr,
            receives_ || case_.in_place ? memory_.data() + recv_at_ : nullptr};
  }

  void verify() const {
    const bool free_rest = case_.in_place && case_.collective == Collective::kReduceScatter;
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool mine = i >= recv_at_ && i < recv_at_ + received_;
      if (free_rest && !mine) continue;
      ASSERT_EQ(memory_[i], expected_[i]) << "rank " << rank_ << ", element " << i << " of " << memory_.size();
    }
  }

 private:
  float combined(size_t element) const {
    float value = input_of(0, element);
    for (int32_t r = 1; r < ranks_; ++r) {
      const float other = input_of(r, element);
      value = case_.op == ReduceOp::kMax ? std::max(value, other) : value + other;
    }
    return value;
  }

  float result(size_t i) const {
    const auto block = case_.count == 0 ? 0 : static_cast<int32_t>(i / case_.count);
    const size_t own = case_.count * static_cast<size_t>(rank_);
    switch (case_.collective) {
      case Collective::kReduceScatter:
        return combined(own + i);
      case Collective::kAllGather:
        return input_of(block, i % case_.count);
      case Collective::kAllToAll:
        return input_of(block, own + i % case_.count);
      case Collective::kBroadcast:
        return input_of(case_.root, i);
      default:
        return combined(i);
    }
  }

  const Case case_;
  const int32_t rank_;
  const int32_t ranks_;
  size_t sent_ = 0, received_ = 0, send_at_ = 0, recv_at_ = 0;
  bool sends_ = true, receives_ = true;
  std::vector<float> memory_, expected_;
};

// How a schedule is selected.
struct Way {
  std::string algo{};
  uint32_t chunks = 0;
  const char* policy = "";
  const char* intra = "";
};

Schedule schedule_for(const Case& c, const Topology& topology, const Way& way) {
  SelectionRequest request;
  request.collective = c.collective;
  PrepareRequest prepare;
  prepare.collective = c.collective;
  prepare.count = c.count;
  request.element_bytes = 4;
  request.bytes = vector_elements(prepare, topology.ranks()) * 4;
  request.root = c.root;
  SelectionConfig config;
  config.algo = way.algo;
  config.chunks = way.chunks;
  if (*way.policy != '\0') config.policy = way.policy;
  if (*way.intra != '\0') config.intra = way.intra;
  auto schedule = select_schedule(request, topology, config);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

void run_case(const Case& c, const Topology& topology, const Schedule& schedule, SimCluster& cluster) {
  SimCall call;
  call.request.collective = c.collective;
  call.request.count = c.count;
  call.request.op = c.op;
  call.request.root = c.root;
  call.request.in_place = c.in_place;
  call.schedule = schedule;
  std::vector<Memory> memories;
  for (int32_t r = 0; r < topology.ranks(); ++r) memories.emplace_back(c, r, topology.ranks());
  for (Memory& memory : memories) call.buffers.push_back(memory.buffers());
  const auto time = cluster.run({call});
  ASSERT_TRUE(time.ok()) << time.error().message;
  for (const Memory& memory : memories) memory.verify();
}

std::string describe(const Case& c, const Topology& topology, const Schedule& schedule) {
  return std::string(to_string(c.collective)) + " of " + std::to_string(c.count) + ", root " + std::to_string(c.root) +
         (c.in_place ? ", in place\n" : "\n") + to_string(schedule, topology);
}

class Ways : public testing::TestWithParam<std::vector<int32_t>> {
 protected:
  // Runs all sizes, roots and buffer placements.
  void run_all(Collective collective, const Way& way) {
    const Topology topology = grid(GetParam());
    SimCluster cluster(topology, options_for(topology, ++seed_, kMostJitterNs));
    for (const size_t count : {0u, 1u, 37u, 9001u}) {
      for (int32_t root = 0; root < (has_root(collective) ? topology.ranks() : 1); ++root) {
        for (const bool in_place : {false, true}) {
          const Case c{collective, count, root, in_place, root % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax};
          const Schedule schedule = schedule_for(c, topology, way);
          SCOPED_TRACE(describe(c, topology, schedule));
          run_case(c, topology, schedule, cluster);
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  std::string on_each(const std::string& name) const {
    std::string list = name;
    for (size_t d = 1; d < GetParam().size(); ++d) list += "," + name;
    return list;
  }

 private:
  uint64_t seed_ = 0;
};

TEST_P(Ways, FreelySelected) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                      Collective::kBroadcast, Collective::kReduce, Collective::kAllToAll}) {
    run_all(collective, {"", 0});
  }
}

TEST_P(Ways, BroadcastAndReduceByEveryAlgorithm) {
  for (const char* name : {"tree", "dbtree", "chain", "direct"}) {
    for (const uint32_t chunks : {1u, 3u}) {
      run_all(Collective::kBroadcast, {on_each(name), chunks});
      run_all(Collective::kReduce, {on_each(name), chunks});
    }
  }
  run_all(Collective::kBroadcast, {"direct,tree,ring", 2});
  run_all(Collective::kReduce, {"dbtree,ring,direct", 2});
}

TEST_P(Ways, ByBruck) {
  run_all(Collective::kAllToAll, {"*bruck", 1});
  run_all(Collective::kAllGather, {"*bruck", 1});
  for (const uint32_t chunks : {1u, 3u}) run_all(Collective::kAllGather, {on_each("bruck"), chunks});
}

TEST_P(Ways, AllToAllPairwise) {
  run_all(Collective::kAllToAll, {"*pairwise", 1});
}

TEST_P(Ways, AllToAllOverTheDimensions) {
  for (const uint32_t chunks : {1u, 3u}) {
    run_all(Collective::kAllToAll, {on_each("direct"), chunks});
    run_all(Collective::kAllToAll, {on_each("bruck"), chunks});
    run_all(Collective::kAllToAll, {on_each("pairwise"), chunks});
  }
}

// All-reduce phases on every dimension, and between the halves on inner dimensions.
TEST_P(Ways, AllReduceByEveryMixture) {
  for (const char* algo : {"rd,rd,rd", "tree,direct,dbtree", "rd,ring,hd", "ring,rd,tree", "hd,dbtree,ring",
                           "ring,hd,rd", "direct,ring,tree", "ring,ring,ring"}) {
    const std::string text = algo;
    const size_t names = GetParam().size();  // at most three
    size_t end = 0;
    for (size_t n = 0; n < names; ++n) end = text.find(',', end) + (n + 1 < names ? 1 : 0);
    for (const uint32_t chunks : {1u, 5u}) run_all(Collective::kAllReduce, {text.substr(0, end), chunks});
  }
}

// Where latencies hardly count, chunks differ in their order of dimensions.
TEST_P(Ways, ByPoliciesThatOrderChunks) {
  const Way kWays[] = {{on_each("ring"), 16, "themis", "scf"},
                       {on_each("direct"), 16, "themis", "fifo"},
                       {on_each("ring"), 16, "auto", "scf"}};
  Topology topology = grid(GetParam());
  for (Dimension& dimension : topology.dimensions) dimension.latency_ns = 50;
  SimCluster cluster(topology, options_for(topology, 5, kMostJitterNs));
  for (const Way& way : kWays) {
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
      const Case c{collective, collective == Collective::kAllReduce ? 60'007u : 5'003u, 0, false};
      const Schedule schedule = schedule_for(c, topology, way);
      SCOPED_TRACE(way.policy + describe(c, topology, schedule));
      run_case(c, topology, schedule, cluster);
      if (HasFatalFailure()) return;
      std::set<std::vector<int>> walks;
      for (const ChunkSchedule& chunk : schedule.chunks) {
        std::vector<int> walk;
        for (const PhaseChoice& phase : chunk.phases) walk.push_back(phase.dimension);
        walks.insert(walk);
      }
      // Chunks are moved away from the first dimension if it has the most to carry.
      if (std::ranges::is_sorted(GetParam(), std::greater<>())) {
        EXPECT_EQ(walks.size() > 1, GetParam().size() > 1);
      }
    }
  }
}

// Sums that round: all ranks must still have the same bits.
TEST_P(Ways, AllReduceGivesAllRanksTheSameBits) {
  const Topology topology = grid(GetParam());
  for (const char* algo : {"", "rd", "tree", "direct", "ring", "hd", "dbtree"}) {
    for (const size_t count : {1u, 37u, 9001u}) {
      const Case c{Collective::kAllReduce, count, 0, false};
      const Schedule schedule = schedule_for(c, topology, {algo, count > 100 ? 3u : 0u});
      SCOPED_TRACE(describe(c, topology, schedule));
      Job job = all_reduce_job(topology, count, 0);
      job.call.schedule = schedule;
      SimCluster cluster(topology, options_for(topology, 3, kMostJitterNs));
      const auto time = cluster.run({job.call});
      ASSERT_TRUE(time.ok()) << time.error().message;
      expect_sums(job);
    }
  }
}

// A rank may leave a barrier only after all have entered it. If one is missing, no rank leaves.
TEST_P(Ways, BarrierHoldsAllRanks) {
  const Topology topology = grid(GetParam());
  const Case c{Collective::kBarrier, 0, 0, false};
  for (const std::string& algo :
       {"barrier:" + on_each("rd"), "barrier:" + on_each("tree"), "barrier:" + on_each("dissemination"),
        std::string("barrier:*dissemination"), std::string()}) {
    SimCall call;
    call.request.collective = Collective::kBarrier;
    call.schedule = schedule_for(c, topology, {algo});
    call.buffers.resize(topology.ranks());
    SCOPED_TRACE(describe(c, topology, call.schedule));
    SimCluster all(topology, options_for(topology, 1, kMostJitterNs));
    ASSERT_TRUE(all.run({call}).ok());
    for (int32_t missing = 0; missing < topology.ranks(); ++missing) {
      std::vector<std::vector<size_t>> starts(topology.ranks(), std::vector<size_t>{0});
      starts[missing] = {};
      SimCluster others(topology, options_for(topology, 1, kMostJitterNs));
      const auto result = others.run({call}, starts);
      ASSERT_FALSE(result.ok()) << "without rank " << missing;
      const std::string& stuck = result.error().message;  // "...: rank 0: ... | rank 1: ... | rank 2: ..."
      EXPECT_EQ(std::count(stuck.begin(), stuck.end(), '|'), topology.ranks() - 2) << stuck;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sim, Ways,
                         testing::Values(std::vector<int32_t>{8}, std::vector<int32_t>{4, 2},
                                         std::vector<int32_t>{2, 2, 2}, std::vector<int32_t>{3, 2},
                                         std::vector<int32_t>{2, 3, 2}),
                         [](const auto& info) {
                           std::string name;
                           for (const int32_t size : info.param)
                             name += (name.empty() ? "" : "x") + std::to_string(size);
                           return name;
                         });

}  // namespace
}  // namespace dimensions_test
}  // namespace trestle
