// Which transport joins two ranks: what the topology says of their dimension, else what their places allow.
#include "comm/setup/wiring.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

// One letter per rank: its host; a digit after the letter: its process there (else every rank has its own).
std::vector<RankInfo> ranks_at(const std::string& text) {
  std::vector<RankInfo> infos;
  for (size_t i = 0; i < text.size(); ++i) {
    RankInfo info;
    info.rank = static_cast<int32_t>(infos.size());
    info.place.hostname = info.place.host_id = std::string(1, text[i]);
    info.place.process_id = 1000 + i;
    if (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9')
      info.place.process_id = static_cast<uint64_t>(text[++i] - '0');
    infos.push_back(info);
  }
  return infos;
}

Topology chosen(const TopologyRequest& request, const std::vector<RankInfo>& infos) {
  std::vector<RankPlace> places;
  for (const RankInfo& info : infos) places.push_back(info.place);
  auto topology = choose_topology(request, places);
  EXPECT_TRUE(topology.ok()) << topology.error().message;
  return std::move(topology).value();
}

TEST(PairTransport, NeighboursOnOneHostOfAFlatDimensionUseSharedMemory) {
  const std::vector<RankInfo> infos = ranks_at("aaabbbbb");  // 3 + 5
  const Topology topology = chosen({"", "", "auto"}, infos);
  ASSERT_EQ(topology.dimensions.size(), 1u);
  for (int32_t a = 0; a < 8; ++a) {
    for (int32_t b = 0; b < 8; ++b) {
      const TransportKind expected = a == b               ? TransportKind::kLoopback
                                     : (a < 3) == (b < 3) ? TransportKind::kShm
                                                          : TransportKind::kTcp;
      EXPECT_EQ(pair_transport(topology, infos, a, b), expected) << "ranks " << a << " and " << b;
    }
  }
}

TEST(PairTransport, RanksOfOneProcessUseLoopback) {
  const std::vector<RankInfo> infos = ranks_at("a1a1a2b1b1");  // b's process 1 is another one than a's
  const Topology topology = chosen({"", "", "auto"}, infos);
  const char* const expected[] = {"loopback loopback shm tcp tcp", "loopback loopback shm tcp tcp",
                                  "shm shm loopback tcp tcp", "tcp tcp tcp loopback loopback",
                                  "tcp tcp tcp loopback loopback"};
  for (int32_t a = 0; a < 5; ++a) {
    std::string text;
    for (int32_t b = 0; b < 5; ++b) {
      text += (b == 0 ? "" : " ") + std::string(to_string(pair_transport(topology, infos, a, b)));
    }
    EXPECT_EQ(text, expected[a]) << "rank " << a;
  }
}

TEST(PairTransport, WhatTheTopologySaysHolds) {
  const std::vector<RankInfo> infos = ranks_at("aaaa");
  const Topology topology = chosen({"2x2", "", "shm,tcp"}, infos);
  EXPECT_EQ(pair_transport(topology, infos, 0, 1), TransportKind::kShm);
  EXPECT_EQ(pair_transport(topology, infos, 0, 2), TransportKind::kTcp) << "although they are on one host";
  EXPECT_EQ(pair_transport(topology, infos, 0, 3), TransportKind::kTcp) << "of the outermost difference";
  EXPECT_EQ(pair_transport(topology, infos, 2, 2), TransportKind::kLoopback);
}

}  // namespace
}  // namespace trestle
