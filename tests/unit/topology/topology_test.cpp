// Coordinates, groups, names, hash and text of topologies.
#include "topology/topology.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "support/grids.h"

namespace trestle {
namespace {

TEST(Topology, CountsInnermostFirst) {
  const Topology topology = even_grid({4, 2});
  EXPECT_EQ(topology.ranks(), 8);
  EXPECT_EQ(topology.coordinate(6, 0), 2);
  EXPECT_EQ(topology.coordinate(6, 1), 1);
  EXPECT_EQ(topology.coordinate(6, kFlat), 6);
  EXPECT_EQ(topology.group(6, 0), (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(topology.group(6, 1), (std::vector<int32_t>{2, 6}));
  EXPECT_EQ(topology.group(6, kFlat).size(), 8u);
  EXPECT_EQ(topology.group_size(1), 2);
  EXPECT_EQ(topology.group_size(kFlat), 8);
}

TEST(Topology, GroupsAgreeWithCoordinatesOnRandomGrids) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> sizes(1 + rng.below(4));
    for (int32_t& size : sizes) size = static_cast<int32_t>(1 + rng.below(5));
    const Topology topology = even_grid(sizes);
    for (int32_t rank = 0; rank < topology.ranks(); ++rank) {
      int32_t back = 0;
      for (size_t d = sizes.size(); d-- > 0;)
        back = back * sizes[d] + topology.coordinate(rank, static_cast<uint8_t>(d));
      ASSERT_EQ(back, rank);
      for (uint8_t d = 0; d < sizes.size(); ++d) {
        const std::vector<int32_t> group = topology.group(rank, d);
        ASSERT_EQ(group.size(), static_cast<size_t>(sizes[d]));
        ASSERT_EQ(group[static_cast<size_t>(topology.coordinate(rank, d))], rank);
        for (size_t i = 0; i < group.size(); ++i) {
          ASSERT_EQ(topology.coordinate(group[i], d), static_cast<int32_t>(i));
          for (uint8_t other = 0; other < sizes.size(); ++other) {
            if (other == d) continue;
            ASSERT_EQ(topology.coordinate(group[i], other), topology.coordinate(rank, other));
          }
        }
      }
    }
  }
}

TEST(Topology, TransportIsThatOfTheOutermostDifference) {
  Topology topology = even_grid({2, 2, 2});
  topology.dimensions[0].transport = TransportKind::kLoopback;
  topology.dimensions[1].transport = TransportKind::kShm;
  topology.dimensions[2].transport = TransportKind::kTcp;
  EXPECT_EQ(topology.transport_between(0, 1), TransportKind::kLoopback);
  EXPECT_EQ(topology.transport_between(0, 2), TransportKind::kShm);
  EXPECT_EQ(topology.transport_between(1, 2), TransportKind::kShm);
  EXPECT_EQ(topology.transport_between(3, 4), TransportKind::kTcp);
  EXPECT_EQ(topology.transport_between(7, 6), TransportKind::kLoopback);
}

TEST(Topology, HashSeesEveryFieldButNotTheReason) {
  std::set<uint64_t> hashes;
  const Topology base = even_grid({4, 2});
  hashes.insert(hash(base));
  const auto changed = [&](auto change) {
    Topology topology = base;
    change(topology.dimensions[1]);
    EXPECT_TRUE(hashes.insert(hash(topology)).second);
  };
  changed([](Dimension& d) { d.size = 3; });
  changed([](Dimension& d) { d.kind = DimensionKind::kRing; });
  changed([](Dimension& d) { d.bandwidth_mbps = 1; });
  changed([](Dimension& d) { d.latency_ns = 1; });
  changed([](Dimension& d) { d.transport = TransportKind::kTcp; });
  changed([](Dimension& d) { d.interface = "eth1"; });
  changed([](Dimension& d) { d.rails = {{"eth2", 0}}; });
  changed([](Dimension& d) { d.rails = {{"eth2", 25'000}}; });
  changed([](Dimension& d) { d.rails = {{"eth2", 25'000}, {"eth3", 0}}; });
  changed([](Dimension& d) { d.shared_resource = "cpu"; });
  changed([](Dimension& d) { d.shared_ps_per_byte = 1; });
  changed([](Dimension& d) { d.in_network_reduction = true; });
  changed([](Dimension& d) { d.unknown_network = true; });
  EXPECT_TRUE(hashes.insert(hash(even_grid({8}))).second);
  EXPECT_TRUE(hashes.insert(hash(even_grid({2, 4}))).second);
  Topology explained = base;
  explained.reason = "because";
  EXPECT_EQ(hash(explained), hash(base));
}

TEST(Topology, ParsesDims) {
  EXPECT_EQ(parse_dims("4x2").value(), (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(parse_dims("1").value(), (std::vector<int32_t>{1}));
  EXPECT_EQ(parse_dims("2x3x5x7").value(), (std::vector<int32_t>{2, 3, 5, 7}));
}

TEST(Topology, BadDimsSayWhatAndWhere) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"", "a size is missing at character 1"},
      {"4x", "a size is missing at character 3"},
      {"x4", "not a size at character 1"},
      {"4X2", "expected 'x' between sizes at character 2"},
      {"4x0", "a size below 1 at character 3"},
      {"4x-2", "a size below 1 at character 3"},
      {"4 x2", "expected 'x'"},
      {"99999999999", "above 2147483647 at character 1"},
      {"65536x65536", "more than 2147483647 ranks"},
      {"4xx2", "not a size at character 3"},
      {"4x2 ", "expected 'x'"},
      {"four", "not a size"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_dims(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find(c.said), std::string::npos) << parsed.error().message;
  }
}

TEST(Topology, KnowsWhatALinkCarriesInAStep) {
  Topology topology = even_grid({4, 2});
  topology.dimensions[0].bandwidth_mbps = 80'000;
  topology.dimensions[0].latency_ns = 500;
  topology.dimensions[1].bandwidth_mbps = 10'000;
  topology.dimensions[1].latency_ns = 50'000;
  EXPECT_EQ(bytes_in_a_step(topology, 0), 5'000u);
  EXPECT_EQ(bytes_in_a_step(topology, 1), 62'500u);
  EXPECT_EQ(bytes_in_a_step(topology, kFlat), 62'500u);
  EXPECT_EQ(bytes_in_a_step(Topology{}, kFlat), 0u);
  topology.dimensions[1].transport = TransportKind::kTcp;
  topology.dimensions[1].bandwidth_mbps = 0;
  topology.dimensions[1].latency_ns = kNominalLatency;
  const TransportFacts& tcp = facts_of(TransportKind::kTcp);
  EXPECT_EQ(bytes_in_a_step(topology, 1), tcp.bandwidth_mbps * tcp.latency_ns / 8000);
  // Files may name any figures.
  topology.dimensions[1].bandwidth_mbps = uint64_t{1} << 60;
  topology.dimensions[1].latency_ns = uint64_t{1} << 60;
  EXPECT_EQ(bytes_in_a_step(topology, 1), UINT64_MAX / 4);
}

TEST(Topology, PrintsATable) {
  Topology topology = even_grid({4, 2});
  topology.reason = "dimensions 4x2 as configured";
  topology.dimensions[0].transport = TransportKind::kShm;
  topology.dimensions[1] = {2, DimensionKind::kRing, 12500, 5000, TransportKind::kTcp, "eth1", "cpu", 40};
  EXPECT_EQ(to_text(topology),
            "dimension  size  kind    transport  bandwidth  latency  interface  shared\n"
            "1          4     switch  shm        nominal    nominal  any        -\n"
            "2          2     ring    tcp        12.5 Gb/s  5000 ns  eth1       cpu 40 ps/B\n"
            "8 ranks; why: dimensions 4x2 as configured\n");
  topology.dimensions[1].interface.clear();
  topology.dimensions[1].rails = {{"eth1", 10'000}, {"eth2", 2'500}};
  EXPECT_NE(to_text(topology).find("12.5 Gb/s  5000 ns  eth1@10g,eth2@2500m  cpu 40 ps/B\n"), std::string::npos)
      << to_text(topology);
}

}  // namespace
}  // namespace trestle
