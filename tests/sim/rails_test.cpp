// Simulated rails: they divide data as well as is possible, nothing is lost whatever happens to them as long as one is
// left, and the seed repeats everything.
#include "base/clock.h"
#include "sim/rail_links.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/sim/jobs.h"

namespace trestle {
namespace rails_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct RailsCase {
  std::vector<SimRail> rails;
  int32_t ranks = 4;
  SimFaults faults = {};
};

SimRail rail(uint64_t mbps, uint64_t latency_ns = 50'000, bool stated = true) {
  return {"eth" + std::to_string(mbps), mbps, latency_ns, 0, stated};
}

Topology topology_of(const RailsCase& what) {
  Topology topology;
  Dimension& dimension = topology.dimensions.emplace_back();
  dimension.size = what.ranks;
  dimension.latency_ns = what.rails[0].latency_ns;
  for (const SimRail& each : what.rails) {
    dimension.rails.push_back({each.name, each.bandwidth_mbps});
    dimension.bandwidth_mbps += each.bandwidth_mbps;
  }
  return topology;
}

SimOptions options_of(const RailsCase& what) {
  SimOptions options;
  options.links = sim_links(topology_of(what), false);
  options.links[0].rails = what.rails;
  options.faults = what.faults;
  return options;
}

struct Outcome {
  uint64_t time_ps = 0;
  std::vector<SimRailCount> rails;
  std::string error;
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const SimRailCount& each : rails) sum += each.bytes;
    return sum;
  }
  double share(size_t at) const { return static_cast<double>(rails[at].bytes) / static_cast<double>(bytes()); }
};

// A ring all-reduce without data; of several, the last one.
Outcome all_reduce(const RailsCase& what, uint64_t bytes, int times = 1) {
  const Topology topology = topology_of(what);
  SimOptions options = options_of(what);
  options.data = false;
  SimCall call;
  call.request.count = bytes / 4;
  call.schedule = schedule_for(Collective::kAllReduce, bytes, topology, 4, "ring");
  SimCluster cluster(topology, options);
  for (; times > 1; --times) EXPECT_TRUE(cluster.run({call}).ok());
  const std::vector<SimRailCount> before = cluster.network().rail_counts(0);
  const Result<int64_t> time = cluster.run({call});
  Outcome outcome{cluster.last_run_ps(), cluster.network().rail_counts(0), time.ok() ? "" : time.error().message};
  for (size_t i = 0; i < before.size(); ++i) outcome.rails[i].bytes -= before[i].bytes;
  return outcome;
}

// Bytes of each rail if all of them end together, by bisection over that moment.
std::vector<double> optimum(const RailsCase& what, double bytes, double& finish_ns) {
  const auto carried = [](const SimRail& each, double until_ns) {
    return std::max(0.0, until_ns - static_cast<double>(each.latency_ns)) * static_cast<double>(each.bandwidth_mbps) /
           8000;
  };
  double low = 0;
  double high = 1e15;
  for (int i = 0; i < 200; ++i) {
    double sum = 0;
    for (const SimRail& each : what.rails) sum += carried(each, (low + high) / 2);
    (sum < bytes ? low : high) = (low + high) / 2;
  }
  std::vector<double> shares;
  for (const SimRail& each : what.rails) shares.push_back(carried(each, high));
  finish_ns = high;
  return shares;
}

TEST(SimRails, DivideDataAsTheOptimumDoes) {
  const std::vector<RailsCase> cases = {
      {{rail(1000), rail(500)}},
      {{rail(1000, 50'000, false), rail(500, 50'000, false)}},
      {{rail(500), rail(300), rail(100)}},
      {{rail(500, 20'000, false), rail(300, 80'000, false), rail(100, 300'000, false)}},
      {{rail(25'000, 10'000), rail(10'000, 30'000)}},
      {{rail(1000, 50'000), rail(1000, 2'000'000)}},
      {{rail(900), rail(800), rail(700), rail(600)}, 2},
      {{rail(1000), rail(500)}, 7},
  };
  for (const RailsCase& what : cases) {
    const uint64_t bytes = 128 * kMiB;
    const double sent = 2.0 * (what.ranks - 1) / what.ranks * static_cast<double>(bytes);
    double finish_ns = 0;
    const std::vector<double> best = optimum(what, sent, finish_ns);
    const Outcome outcome = all_reduce(what, bytes);
    ASSERT_EQ(outcome.error, "");
    for (size_t i = 0; i < best.size(); ++i) {
      EXPECT_NEAR(outcome.share(i) * sent, best[i], 0.03 * best[i])
          << "rail " << i << " of " << best.size() << ", " << what.rails[0].name;
    }
    EXPECT_LE(static_cast<double>(outcome.time_ps) / 1000, 1.05 * finish_ns) << what.rails[0].name;
  }
}

TEST(SimRails, OfTheSameSeedRepeat) {
  RailsCase what{{rail(1000), rail(500)}};
  what.rails[1].most_jitter_ns = 300'000;
  what.faults.rails = {{0, 1, SimRailChange::kDrop, 30 * kMs}, {0, 1, SimRailChange::kPass, 200 * kMs}};
  what.faults.rail_silence_ns = 50 * static_cast<int64_t>(kMs);
  what.faults.seed = 1;
  const Outcome first = all_reduce(what, 64 * kMiB);
  const Outcome again = all_reduce(what, 64 * kMiB);
  what.faults.seed = 2;
  const Outcome other = all_reduce(what, 64 * kMiB);
  EXPECT_EQ(first.time_ps, again.time_ps);
  EXPECT_EQ(first.rails[1].bytes, again.rails[1].bytes);
  EXPECT_EQ(first.rails[1].again_bytes, again.rails[1].again_bytes);
  EXPECT_NE(first.time_ps, other.time_ps);
}

// All rails but the first die and heal at random times.
std::vector<SimRailFault> random_faults(Rng& rng, size_t rails, uint64_t within_ns) {
  constexpr SimRailChange kChanges[] = {SimRailChange::kDown, SimRailChange::kUp, SimRailChange::kDrop,
                                        SimRailChange::kPass, SimRailChange::kRate};
  std::vector<SimRailFault> faults;
  for (uint64_t i = 0, count = 1 + rng.below(12); i < count; ++i) {
    const auto at = static_cast<uint8_t>(1 + rng.below(rails - 1));
    faults.push_back({0, at, kChanges[rng.below(5)], rng.below(within_ns), 1 + rng.below(2'000'000)});
  }
  return faults;
}

TEST(SimRails, ThatDieLoseNoByte) {
  uint64_t again = 0;
  uint64_t losses = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    RailsCase what;
    for (size_t i = 0, count = 2 + rng.below(2); i < count; ++i)
      what.rails.push_back(rail(20 + rng.below(100), 10'000 + rng.below(500'000), rng.below(2) == 0));
    what.ranks = static_cast<int32_t>(2 + rng.below(3));
    const Topology topology = topology_of(what);
    Job reference = all_reduce_job(topology, 300'001, 3, "ring");
    SimCluster quiet(topology, options_of(what));
    ASSERT_TRUE(quiet.run({reference.call}).ok());
    expect_sums(reference);
    what.faults = {seed, rng.below(300'000)};
    what.faults.rails = random_faults(rng, what.rails.size(), 150 * kMs);
    what.faults.rail_silence_ns = static_cast<int64_t>(10 * kMs + rng.below(30 * kMs));
    Job job = all_reduce_job(topology, 300'001, 3, "ring");
    SimCluster cluster(topology, options_of(what));
    const auto time = cluster.run({job.call});
    ASSERT_TRUE(time.ok()) << seed << ": " << time.error().message;
    ASSERT_EQ(job.recv, reference.recv) << "faults changed bits, seed " << seed;
    for (const SimRailCount& count : cluster.network().rail_counts(0)) {
      again += count.again_bytes;
      losses += count.losses;
    }
  }
  EXPECT_GT(losses, 20u) << "the faults must have hit something";
  EXPECT_GT(again, kMiB);
}

TEST(SimRails, ThatHealCarryAgain) {
  RailsCase what{{rail(1000), rail(1000)}};
  what.faults.rails = {{0, 1, SimRailChange::kDown, 100 * kMs}};
  const Outcome dead = all_reduce(what, 128 * kMiB);
  ASSERT_EQ(dead.error, "");
  EXPECT_EQ(dead.rails[1].losses, 1u);
  EXPECT_EQ(dead.rails[0].losses, 0u);
  EXPECT_LT(dead.share(1), 0.25);
  what.faults.rails.push_back({0, 1, SimRailChange::kUp, 400 * kMs});
  const Outcome healed = all_reduce(what, 128 * kMiB);
  ASSERT_EQ(healed.error, "");
  EXPECT_EQ(healed.rails[1].losses, 1u);
  EXPECT_GT(healed.share(1), dead.share(1) + 0.1);
  EXPECT_LT(healed.time_ps, dead.time_ps);
}

TEST(SimRails, ThatHealBeforeAnyoneNoticesAreNotLost) {
  RailsCase what{{rail(1000), rail(1000)}};
  what.faults.rails = {{0, 1, SimRailChange::kDrop, 100 * kMs}, {0, 1, SimRailChange::kPass, 300 * kMs}};
  const Outcome outcome = all_reduce(what, 64 * kMiB);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.rails[1].losses, 0u);
  EXPECT_EQ(outcome.rails[1].again_bytes, 0u);
}

TEST(SimRails, WhoseRateIsCutLoseTheirShare) {
  RailsCase what{{rail(1000), rail(1000)}};
  what.faults.rails = {{0, 1, SimRailChange::kRate, 100 * kMs, 100'000}};
  const uint64_t bytes = 256 * kMiB;
  const Outcome cut = all_reduce(what, bytes);
  ASSERT_EQ(cut.error, "");
  // 100 ms at both rates, then at 1100 Mbit/s.
  const double rest = 1.5 * static_cast<double>(bytes) - 2 * 0.1 * 125e6;
  EXPECT_LE(static_cast<double>(cut.time_ps) * 1e-12, 1.06 * (0.1 + rest / (1.1 * 125e6)));
  EXPECT_LT(cut.share(1), 0.2);
}

TEST(SimRails, TheLastRailsEndIsAnErrorThatNamesAllOfThem) {
  RailsCase what{{rail(1000), rail(500)}};
  what.faults.rails = {{0, 1, SimRailChange::kDown, 20 * kMs}, {0, 0, SimRailChange::kDrop, 40 * kMs}};
  what.faults.rail_silence_ns = 300 * static_cast<int64_t>(kMs);
  const Outcome outcome = all_reduce(what, 128 * kMiB);
  EXPECT_NE(
      outcome.error.find("dimension 1 has no rail left: eth1000 loses everything since 40ms, eth500 is down since "
                         "20ms"),
      std::string::npos)
      << outcome.error;
}

TEST(SimRails, CarryTheirOwnDimensionOnly) {
  Topology topology = topology_of({{rail(1000), rail(500)}, 2});
  Dimension inner;
  inner.size = 2;
  inner.bandwidth_mbps = 8000;
  inner.latency_ns = 1000;
  topology.dimensions.insert(topology.dimensions.begin(), inner);
  Job job = all_reduce_job(topology, 100'003, 2);
  SimOptions options;
  options.links = sim_links(topology, false);
  options.segment_bytes = 64 * 1024;
  SimCluster cluster(topology, options);
  const auto time = cluster.run({job.call});
  ASSERT_TRUE(time.ok()) << time.error().message;
  expect_sums(job);
  EXPECT_TRUE(cluster.network().rail_counts(0).empty());
  const std::vector<SimRailCount> rails = cluster.network().rail_counts(1);
  ASSERT_EQ(rails.size(), 2u);
  EXPECT_GE(rails[0].bytes + rails[1].bytes, cluster.network().bytes_sent(1));
  EXPECT_GT(cluster.network().bytes_sent(0), 0u);
}

TEST(SimLinks, HaveTheRailsOfTheFileAndShareWhatIsNotStated) {
  Topology topology = topology_of({{rail(1000), rail(500)}});
  topology.dimensions[0].rails[1].bandwidth_mbps = 0;
  const std::vector<SimLink> links = sim_links(topology, false);
  ASSERT_EQ(links[0].rails.size(), 2u);
  EXPECT_EQ(links[0].rails[0].bandwidth_mbps, 1000u);
  EXPECT_TRUE(links[0].rails[0].stated);
  EXPECT_EQ(links[0].rails[1].bandwidth_mbps, 500u);
  EXPECT_FALSE(links[0].rails[1].stated);
  EXPECT_EQ(links[0].rails[1].latency_ns, 50'000u);
}

}  // namespace
}  // namespace rails_test
}  // namespace trestle
