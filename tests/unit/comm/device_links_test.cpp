// How the dimensions of a communicator carry device memory: what each rank finds, and what all of them agree on.
#include "comm/setup/device_links.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

Topology of_sizes(std::initializer_list<int32_t> sizes) {
  Topology topology;
  for (const int32_t size : sizes) topology.dimensions.emplace_back().size = size;
  return topology;
}

constexpr PeerPath kNo = PeerPath::kNone, kSame = PeerPath::kSameDevice, kOther = PeerPath::kOtherProcess;

TEST(DeviceLinks, ADimensionHasTheWorstWayOfItsPairs) {
  const Topology topology = of_sizes({2, 2});
  const std::vector<std::string> told = {"90 0000:3b:00.0", "90 0000:3b:00.0", "90 0000:af:00.0", "90 0000:3b:00.0"};
  // A peer in another process may use the same device, which no driver sees here.
  const auto links = links_of_rank(topology, 0, -1, PeerPaths({kSame, kOther, kOther, kOther}), told);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0], (DeviceLink{DeviceWay::kOneDevice, nominal_speeds(90).memory_mbps}));
  EXPECT_EQ(links[1], (DeviceLink{DeviceWay::kPeers, nominal_speeds(90).pcie_mbps}));
  const auto broken = links_of_rank(topology, 0, -1, PeerPaths({kSame, kOther, kOther, kNo}), told);
  EXPECT_EQ(broken[0], links[0]);
  EXPECT_EQ(broken[1], (DeviceLink{DeviceWay::kHost, nominal_speeds(90).pcie_mbps}));
}

TEST(DeviceLinks, ARankWithoutADeviceHasNoPath) {
  for (const DeviceLink& link : links_of_rank(of_sizes({2, 2}), 1, -1, PeerPaths(), {"90 a", "", "90 b", "90 c"}))
    EXPECT_EQ(link.way, DeviceWay::kHost);
}

TEST(DeviceLinks, AllRanksAgreeOnTheWorst) {
  const std::vector<DeviceLink> good = {{DeviceWay::kOneDevice, 500}, {DeviceWay::kPeers, 300}};
  const std::vector<DeviceLink> slow = {{DeviceWay::kOneDevice, 400}, {DeviceWay::kHost, 900}};
  const auto worst = worst_links({encode(good), encode(slow), encode(good)}, 2, {"rank 0", "rank 1", "rank 2"});
  ASSERT_TRUE(worst.ok());
  EXPECT_EQ(worst.value(), (std::vector<DeviceLink>{{DeviceWay::kOneDevice, 400}, {DeviceWay::kHost, 900}}));
}

TEST(DeviceLinks, WhatCannotBeReadNamesItsRank) {
  const std::string good = encode({{DeviceWay::kPeers, 300}});
  std::string unknown_way = good;
  unknown_way[4] = 3;
  for (const std::string& bad : {std::string(), good + "x", good.substr(0, good.size() - 1), encode({}), unknown_way,
                                 encode({{DeviceWay::kPeers, 0}}), encode({{DeviceWay::kPeers, UINT64_MAX}}),
                                 encode({{DeviceWay::kPeers, 300}, {DeviceWay::kPeers, 300}})}) {
    const auto worst = worst_links({good, bad}, 1, {"rank 0", "rank 1 (host a, pid 7)"});
    ASSERT_FALSE(worst.ok());
    EXPECT_EQ(worst.error().code, Code::kRemoteError);
    EXPECT_NE(worst.error().message.find("rank 1 (host a, pid 7)"), std::string::npos);
  }
}

}  // namespace
}  // namespace trestle
