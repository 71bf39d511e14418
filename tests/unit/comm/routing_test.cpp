// The transport between two ranks: the topology's for their dimension, or else the best one for their places. Also its
// consequences: the rails of a rank, segments, and whether all ranks share memory.
#include "comm/setup/routing.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace trestle {
namespace routing_test {
namespace {

// One letter per rank: its host. A digit after the letter: its process there (without digits every rank has its own).
std::vector<RankPlace> ranks_at(const std::string& text) {
  std::vector<RankPlace> places;
  for (size_t i = 0; i < text.size(); ++i) {
    RankPlace place;
    place.hostname = place.host_id = std::string(1, text[i]);
    place.process_id = 1000 + i;
    if (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9')
      place.process_id = static_cast<uint64_t>(text[++i] - '0');
    places.push_back(place);
  }
  return places;
}

Topology chosen(const TopologyRequest& request, const std::vector<RankPlace>& places) {
  auto topology = choose_topology(request, places);
  EXPECT_TRUE(topology.ok()) << topology.error().message;
  return std::move(topology).value();
}

Routing routing_of(const TopologyRequest& request, const std::string& where, uint64_t segment_bytes = 0) {
  const std::vector<RankPlace> places = ranks_at(where);
  return {chosen(request, places), whereabouts(places), segment_bytes};
}

TEST(Routing, NeighboursOnOneHostOfAFlatDimensionUseSharedMemory) {
  const Routing routing = routing_of({"", "", "auto"}, "aaabbbbb");  // 3 + 5
  for (int32_t a = 0; a < 8; ++a) {
    for (int32_t b = 0; b < 8; ++b) {
      const TransportKind expected = a == b               ? TransportKind::kLoopback
                                     : (a < 3) == (b < 3) ? TransportKind::kShm
                                                          : TransportKind::kTcp;
      EXPECT_EQ(routing.transport(a, b), expected) << "ranks " << a << " and " << b;
    }
  }
}

TEST(Routing, RanksOfOneProcessUseLoopback) {
  // Process 1 of host b differs from process 1 of host a.
  const Routing routing = routing_of({"", "", "auto"}, "a1a1a2b1b1");
  const char* const expected[] = {"loopback loopback shm tcp tcp", "loopback loopback shm tcp tcp",
                                  "shm shm loopback tcp tcp", "tcp tcp tcp loopback loopback",
                                  "tcp tcp tcp loopback loopback"};
  for (int32_t a = 0; a < 5; ++a) {
    std::string text;
    for (int32_t b = 0; b < 5; ++b) text += (b == 0 ? "" : " ") + std::string(to_string(routing.transport(a, b)));
    EXPECT_EQ(text, expected[a]) << "rank " << a;
  }
}

TEST(Routing, WhatTheTopologySaysHolds) {
  const Routing routing = routing_of({"2x2", "", "shm,tcp"}, "aaaa");
  EXPECT_EQ(routing.transport(0, 1), TransportKind::kShm);
  EXPECT_EQ(routing.transport(0, 2), TransportKind::kTcp) << "although they are on one host";
  EXPECT_EQ(routing.transport(0, 3), TransportKind::kTcp) << "of the outermost difference";
  EXPECT_EQ(routing.transport(2, 2), TransportKind::kLoopback);
}

// A dimension's interface has an effect only for kinds with several interfaces. There each interface is a rail of its
// own.
TEST(Routing, ARankHasOneRailPerKindAndInterface) {
  const std::vector<RankPlace> places = ranks_at("aabbccdd");
  Topology topology = chosen({"2x2x2", "", "shm,tcp"}, places);
  for (const size_t d : {0, 1, 2}) topology.dimensions[d].interface = "eth" + std::to_string(d);
  const Routing routing(topology, whereabouts(places), 0);
  const RankRoutes routes = routing.routes(2);
  std::string text;
  for (const Carrier& carrier : routes.carriers) text += carrier.text() + " ";
  EXPECT_EQ(text, "loopback shm tcp@eth1 tcp@eth2 ");
  EXPECT_EQ(routes.carrier_of, (std::vector<uint16_t>{2, 2, 0, 1, 3, 3, 3, 3}));
  for (int32_t r = 0; r < 8; ++r) EXPECT_EQ(routes.carriers[routes.carrier_of[r]], routing.carrier(2, r)) << r;
}

TEST(Routing, SegmentsFollowTheRateOfTheDimension) {
  const std::vector<RankPlace> places = ranks_at("aabb");
  Topology topology = chosen({"2x2", "", "shm,tcp"}, places);
  topology.dimensions[1].bandwidth_mbps = 100;
  const Routing by_rate(topology, whereabouts(places), 0);
  EXPECT_EQ(by_rate.segment_bytes(0, 1), uint64_t{256} << 10);
  EXPECT_EQ(by_rate.segment_bytes(0, 2), uint64_t{32} << 10);
  EXPECT_EQ(by_rate.group_segment_bytes({0, 1}), uint64_t{256} << 10);
  EXPECT_EQ(by_rate.group_segment_bytes({0, 1, 2, 3}), uint64_t{32} << 10) << "the least of them";
  EXPECT_EQ(by_rate.group_segment_bytes({3}), uint64_t{256} << 10) << "nobody to talk to";
  const Routing as_asked(topology, whereabouts(places), 4096);
  EXPECT_EQ(as_asked.group_segment_bytes({0, 1, 2, 3}), 4096u);
}

TEST(Routing, KnowsBetweenWhichRanksMessagesAreDivided) {
  const std::vector<RankPlace> places = ranks_at("aabb");
  Routing routing(chosen({"2x2", "", "shm,tcp"}, places), whereabouts(places), 0);
  EXPECT_FALSE(routing.divides({0, 2}));
  routing.divide(routing.carrier(0, 2));
  EXPECT_TRUE(routing.divides({0, 2}));
  EXPECT_TRUE(routing.divides({0, 1, 2, 3})) << "some of them are on other hosts";
  EXPECT_FALSE(routing.divides({0, 1})) << "these share memory";
  EXPECT_FALSE(routing.divides({0}));
}

TEST(Routing, SegmentsSuitThePlaceOfTheData) {
  const std::vector<RankPlace> places = ranks_at("aaab");
  Topology topology = chosen({"4", "", "auto"}, places);
  constexpr MemoryPlace kDevice = MemoryPlace::kDevice;
  const uint64_t host = uint64_t{256} << 10;
  const uint64_t device = facts_of(kDevice).segment_bytes;
  const Routing routing(topology, whereabouts(places), 0);
  EXPECT_GE(device, uint64_t{1} << 20) << "megabytes";
  EXPECT_EQ(device % 64, 0u) << "whole cache lines";
  EXPECT_EQ(routing.segment_bytes(1, 2, kDevice), device);
  EXPECT_EQ(routing.segment_bytes(2, 3, kDevice), device) << "over another transport";
  EXPECT_EQ(routing.segment_bytes(1, 2), host);
  EXPECT_EQ(routing.group_segment_bytes({0, 1, 2, 3}, kDevice), device);
  EXPECT_EQ(routing.group_segment_bytes({0, 1, 2, 3}), host);
  topology.dimensions[0].bandwidth_mbps = 100;
  EXPECT_EQ(Routing(topology, whereabouts(places), 0).segment_bytes(1, 2, kDevice), uint64_t{32} << 10)
      << "a slow rail still needs short segments";
  EXPECT_EQ(Routing(topology, whereabouts(places), 4096).segment_bytes(1, 2, kDevice), 4096u) << "as asked";
}

// The check by dimensions gives the same answer as a check of all pairs.
TEST(Routing, AllShareMemoryIfEveryPairDoes) {
  Rng rng(7);
  int shared = 0;
  for (int round = 0; round < 4000; ++round) {
    static constexpr const char* kDims[] = {"", "2x3", "3x2", "2x2x2", "6"};
    static constexpr const char* kTransports[] = {"auto", "tcp", "shm", "loopback", "shm,auto", "auto,tcp", "shm,tcp"};
    const std::string dims = kDims[rng.below(std::size(kDims))];
    std::string where;
    const uint64_t hosts = 1 + rng.below(2);
    for (int r = 0; r < (dims == "2x2x2" ? 8 : 6); ++r) {
      where += static_cast<char>('a' + rng.below(hosts));
      where += static_cast<char>('0' + rng.below(2));
    }
    const std::vector<RankPlace> places = ranks_at(where);
    const auto topology = choose_topology({dims, "", kTransports[rng.below(std::size(kTransports))]}, places);
    if (!topology.ok()) continue;  // shm across hosts
    const Routing routing(topology.value(), whereabouts(places), 0);
    bool all = true;
    for (int32_t a = 0; a < topology.value().ranks(); ++a) {
      for (int32_t b = 0; b < a; ++b) all = all && facts_of(routing.transport(a, b)).shares_memory;
    }
    shared += all;
    ASSERT_EQ(routing.all_share_memory(), all) << where << "\n" << to_text(topology.value());
  }
  EXPECT_GT(shared, 100);
}

// Processes of a host share memory if all of them can.
TEST(Routing, AHostWithARankThatCannotShareMemoryUsesAnotherTransport) {
  std::vector<RankPlace> places = ranks_at("a1a1a2bb");
  places[2].no_shared_memory = "cannot make 4096 bytes of shared memory";
  const Routing routing(chosen({"", "", "auto"}, places), whereabouts(places), 0);
  EXPECT_EQ(routing.transport(0, 1), TransportKind::kLoopback);
  EXPECT_EQ(routing.transport(0, 2), TransportKind::kTcp);
  EXPECT_EQ(routing.transport(2, 1), TransportKind::kTcp);
  EXPECT_EQ(routing.transport(3, 4), TransportKind::kShm);
  const std::vector<RankPlace> sharing = ranks_at("aa");
  places = sharing;
  places[0].no_shared_memory = "cannot make 4096 bytes of shared memory";
  EXPECT_EQ(chosen({"", "", "auto"}, places).dimensions[0].transport, TransportKind::kTcp);
  EXPECT_EQ(chosen({"", "", "auto"}, sharing).dimensions[0].transport, TransportKind::kShm);
  EXPECT_FALSE(Routing(chosen({"", "", ""}, places), whereabouts(places), 0).all_share_memory());
  const auto refused = choose_topology({"", "", "shm"}, places);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kSystemError);
  EXPECT_TRUE(refused.error().message.starts_with("rank 0 (host a) cannot make 4096 bytes of shared memory; "))
      << refused.error().message;
}

TEST(Routing, OneRankSharesMemoryWithNobody) {
  EXPECT_FALSE(routing_of({"", "", "auto"}, "a").all_share_memory());
  EXPECT_TRUE(routing_of({"", "", "auto"}, "aa").all_share_memory());
}

}  // namespace
}  // namespace routing_test
}  // namespace trestle
