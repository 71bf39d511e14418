// How the dimensions of a communicator carry device memory: what each rank finds, and what all of them agree on.
#include "comm/setup/device_links.h"

#include <gtest/gtest.h>

#include "machine/gpu/nvml_gpus.h"
#include "support/grids.h"

namespace trestle {
namespace device_links_test {
namespace {

// Without NVML.
std::vector<DeviceLink> links_without_nvml(const Topology& topology, int32_t rank, const PeerPaths& paths,
                                           const std::vector<std::string>& told) {
  NvlinkPairs none((NvmlReading()));
  return links_of_rank(topology, rank, -1, paths, told, none);
}

constexpr PeerPath kNo = PeerPath::kNone, kSame = PeerPath::kSameDevice, kOther = PeerPath::kOtherProcess;

TEST(DeviceLinks, ADimensionHasTheWorstWayOfItsPairs) {
  const Topology topology = even_grid({2, 2});
  const std::vector<std::string> told = {"90 0 0000:3b:00.0", "90 0 0000:3b:00.0", "90 0 0000:af:00.0",
                                         "90 0 0000:3b:00.0"};
  // A peer in another process may use the same device, which no driver sees here.
  const auto links = links_without_nvml(topology, 0, PeerPaths({kSame, kOther, kOther, kOther}), told);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0], (DeviceLink{DeviceWay::kOneDevice, nominal_speeds(90).memory_mbps, true}));
  EXPECT_EQ(links[1], (DeviceLink{DeviceWay::kPeers, nominal_speeds(90).pcie_mbps, true}));
  const auto broken = links_without_nvml(topology, 0, PeerPaths({kSame, kOther, kOther, kNo}), told);
  EXPECT_EQ(broken[0], links[0]);
  EXPECT_EQ(broken[1], (DeviceLink{DeviceWay::kHost, nominal_speeds(90).pcie_mbps}));
}

// Four GPUs of one host, of which CUDA shows only the own one: `links` of the first one lead to the second and to
// switches; the last has links to neither.
std::vector<DeviceLink> links_by_nvml(int to_second, int to_switches, uint64_t link_bps) {
  NvmlReading reading;
  for (const char* pci : {"0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0", "0000:3e:00.0"})
    reading.gpus.push_back({.pci = pci, .link_bps = link_bps});
  reading.gpus[0].links.resize(to_second, {.remote_pci = "0000:3c:00.0"});
  reading.gpus[1].links.resize(to_second, {.remote_pci = "0000:3b:00.0"});
  for (const size_t gpu : {0, 2})
    reading.gpus[gpu].links.resize(reading.gpus[gpu].links.size() + to_switches, {.to_switch = true});
  std::vector<std::string> told;
  for (const NvmlGpu& gpu : reading.gpus) told.push_back("90 0 " + gpu.pci);
  NvlinkPairs nvlinks(reading);
  std::vector<DeviceLink> links;
  for (const int32_t peer : {1, 2, 3}) {
    const std::vector<std::string> two = {told[0], told[peer]};
    links.push_back(links_of_rank(even_grid({2}), 0, -1, PeerPaths({kSame, kOther}), two, nvlinks)[0]);
  }
  return links;
}

TEST(DeviceLinks, NvmlTellsOfDevicesThatCudaDoesNotShow) {
  const DeviceSpeeds& nominal = nominal_speeds(90);
  const auto of = [](uint64_t mbps) { return DeviceLink{DeviceWay::kPeers, mbps, true}; };
  const std::vector<DeviceLink> some = {of(400'000), of(1'200'000), of(nominal.pcie_mbps)};
  EXPECT_EQ(links_by_nvml(2, 6, 200'000'000'000), some);
  const std::vector<DeviceLink> capped = {of(nominal.nvlink_mbps), of(nominal.nvlink_mbps), of(nominal.pcie_mbps)};
  EXPECT_EQ(links_by_nvml(18, 18, 212'500'000'000), capped) << "the line code is no data";
  EXPECT_EQ(links_by_nvml(2, 6, 0), capped) << "links of unknown speed";
}

TEST(DeviceLinks, NvmlOrTheDriverTellsOfNvlinks) {
  const DeviceSpeeds speeds = {.memory_mbps = 3000, .nvlink_mbps = 900, .pcie_mbps = 50};
  const GpuLink none = {}, some = {.a = "a", .b = "b", .nvlinks = 4, .rate_bps = 400'000'000};
  EXPECT_EQ(mbps_between(speeds, std::nullopt, false), 50u);
  EXPECT_EQ(mbps_between(speeds, std::nullopt, true), 900u);
  EXPECT_EQ(mbps_between(speeds, none, false), 50u);
  EXPECT_EQ(mbps_between(speeds, none, true), 900u) << "NVML may know less, as in a virtual machine";
  EXPECT_EQ(mbps_between(speeds, some, false), 400u);
  EXPECT_EQ(mbps_between(speeds, some, true), 400u);
}

// Neither has one whose device is not known. It limits nothing.
TEST(DeviceLinks, ARankWithoutADeviceHasNoPath) {
  const std::vector<std::string> told = {"90 0 a", "", "90 0 b", "nonsense"};
  for (const int32_t rank : {1, 3}) {
    for (const DeviceLink& link : links_without_nvml(even_grid({2, 2}), rank, PeerPaths(), told)) {
      EXPECT_EQ(link.way, DeviceWay::kHost);
      EXPECT_GT(link.mbps, nominal_speeds(200).pcie_mbps);
    }
  }
}

TEST(DeviceLinks, TheSpeedOfItsMemoryIsTheDrivers) {
  const auto links = links_without_nvml(even_grid({2}), 0, PeerPaths({kSame, kSame}), {"86 7000000 a", "86 7000000 a"});
  EXPECT_EQ(links[0], (DeviceLink{DeviceWay::kOneDevice, 7'000'000}));
}

TEST(DeviceLinks, CountsTheRanksOfEachDevice) {
  const std::vector<std::string> told = {"90 0 a", "90 0 b", "90 0 a", "", "", "90 0 a"};
  EXPECT_EQ(ranks_per_device(told, {"x", "x", "x", "x", "x", "y"}), 2) << "the last one is on another host";
  EXPECT_EQ(ranks_per_device({"", ""}, {"x", "x"}), 1);
}

TEST(DeviceLinks, AllRanksAgreeOnTheWorst) {
  const std::vector<DeviceLink> good = {{DeviceWay::kOneDevice, 500}, {DeviceWay::kPeers, 300}};
  const std::vector<DeviceLink> slow = {{DeviceWay::kOneDevice, 400}, {DeviceWay::kHost, 900}};
  const auto worst = worst_links({encode(good), encode(slow), encode(good)}, 2, {"rank 0", "rank 1", "rank 2"});
  ASSERT_TRUE(worst.ok());
  EXPECT_EQ(worst.value(), (std::vector<DeviceLink>{{DeviceWay::kOneDevice, 400}, {DeviceWay::kHost, 900}}));
}

TEST(DeviceLinks, WhatCannotBeReadNamesItsRank) {
  const std::string good = encode(std::vector<DeviceLink>{{DeviceWay::kPeers, 300}});
  std::string unknown_way = good;
  unknown_way[4] = 3;
  for (const std::string& bad :
       {std::string(), good + "x", good.substr(0, good.size() - 1), encode(std::vector<DeviceLink>{}), unknown_way,
        encode(std::vector<DeviceLink>{{DeviceWay::kPeers, 0}}),
        encode(std::vector<DeviceLink>{{DeviceWay::kPeers, UINT64_MAX}}), good.substr(0, good.size() - 1) + char{2},
        encode(std::vector<DeviceLink>{{DeviceWay::kPeers, 300}, {DeviceWay::kPeers, 300}})}) {
    const auto worst = worst_links({good, bad}, 1, {"rank 0", "rank 1 (host a, pid 7)"});
    ASSERT_FALSE(worst.ok());
    EXPECT_EQ(worst.error().code, Code::kRemoteError);
    EXPECT_NE(worst.error().message.find("rank 1 (host a, pid 7)"), std::string::npos);
  }
}

}  // namespace
}  // namespace device_links_test
}  // namespace trestle
