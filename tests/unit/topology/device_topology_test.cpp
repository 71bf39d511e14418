// The dimensions as calls on memory of devices meet them, and what selection makes of them.
#include "topology/device_topology.h"

#include <gtest/gtest.h>

#include "base/transport_kinds.h"

namespace trestle {
namespace {

Dimension dimension(int32_t size, TransportKind transport) {
  Dimension one;
  one.size = size;
  one.transport = transport;
  return one;
}

Topology two_levels() {
  Topology topology;
  topology.dimensions = {dimension(4, TransportKind::kShm), dimension(2, TransportKind::kTcp)};
  topology.dimensions[1].latency_ns = 20'000;
  topology.dimensions[1].bandwidth_mbps = 100'000;
  topology.dimensions[1].shared_resource = "switch";
  topology.dimensions[1].shared_ps_per_byte = 7;
  return topology;
}

TEST(DeviceTopology, TheWorseWayHoldsAndOfEqualWaysTheSlowerOne) {
  const DeviceLink one{DeviceWay::kOneDevice, 100}, peers{DeviceWay::kPeers, 300}, slow_peers{DeviceWay::kPeers, 200},
      host{DeviceWay::kHost, 900};
  EXPECT_EQ(worse(one, peers), peers);
  EXPECT_EQ(worse(host, peers), host);
  EXPECT_EQ(worse(peers, slow_peers), slow_peers);
  EXPECT_EQ(worse(slow_peers, peers), slow_peers);
}

TEST(DeviceTopology, NominalSpeedsAreThoseOfTheNearestKnownGeneration) {
  EXPECT_EQ(nominal_speeds(0).nvlink_mbps, nominal_speeds(70).nvlink_mbps);
  EXPECT_EQ(nominal_speeds(75).nvlink_mbps, nominal_speeds(70).nvlink_mbps);
  EXPECT_EQ(nominal_speeds(89).memory_mbps, nominal_speeds(80).memory_mbps);
  EXPECT_EQ(nominal_speeds(90).nvlink_mbps, 3'600'000u);  // 18 links of 25 GB/s
  EXPECT_EQ(nominal_speeds(121).memory_mbps, nominal_speeds(100).memory_mbps);
}

TEST(DeviceTopology, OutboxesOfOnePairAreOutboxesOfAll) {
  const DeviceLink boxed{DeviceWay::kOneDevice, 100, true}, plain{DeviceWay::kOneDevice, 90},
      peers{DeviceWay::kPeers, 300}, host{DeviceWay::kHost, 900};
  EXPECT_EQ(worse(boxed, plain), (DeviceLink{DeviceWay::kOneDevice, 90, true}));
  EXPECT_EQ(worse(peers, boxed), (DeviceLink{DeviceWay::kPeers, 300, true}));
  EXPECT_EQ(worse(boxed, host), host) << "nothing goes through an outbox there";
}

// Sizes, kinds, transports and interfaces stay: plans and routes do not depend on where the data is.
TEST(DeviceTopology, KeepsTheShape) {
  const Topology host = two_levels();
  for (const DeviceWay way : {DeviceWay::kOneDevice, DeviceWay::kPeers, DeviceWay::kHost}) {
    Topology devices = device_topology(host, {{{way, 1'000'000}, {DeviceWay::kHost, 200'000}}});
    ASSERT_EQ(devices.dimensions.size(), host.dimensions.size());
    for (size_t d = 0; d < host.dimensions.size(); ++d) {
      const Dimension& before = host.dimensions[d];
      Dimension& after = devices.dimensions[d];
      EXPECT_TRUE(after.data.has_value());
      after.data.reset();
      after.latency_ns = before.latency_ns;
      after.bandwidth_mbps = before.bandwidth_mbps;
      after.shared_resource = before.shared_resource;
      after.shared_ps_per_byte = before.shared_ps_per_byte;
      EXPECT_EQ(after, before);
    }
  }
}

TEST(DeviceTopology, RanksOfOneDeviceShareItsMemory) {
  const DeviceLink memory{DeviceWay::kOneDevice, 16'000'000};
  const Topology plain = device_topology(two_levels(), {{memory, {DeviceWay::kHost, 200'000}}, 4});
  EXPECT_EQ(plain.dimensions[0].shared_resource, "device memory");
  EXPECT_EQ(plain.dimensions[0].shared_ps_per_byte, 4u);  // read and written, for each of four ranks
  EXPECT_EQ(plain.dimensions[1].shared_resource, "switch");
  const DeviceLink boxed{DeviceWay::kOneDevice, 16'000'000, true};
  const Topology copied = device_topology(two_levels(), {{boxed, {DeviceWay::kHost, 200'000}}, 4});
  EXPECT_EQ(copied.dimensions[0].shared_ps_per_byte, 8u) << "each byte goes through its memory twice";
  EXPECT_GT(copied.dimensions[0].latency_ns, plain.dimensions[0].latency_ns);
  EXPECT_GT(copied.dimensions[0].data->message_ns, plain.dimensions[0].data->message_ns);
  const Topology fast = device_topology(two_levels(), {{{DeviceWay::kOneDevice, 900'000'000}}, 1});
  EXPECT_EQ(fast.dimensions[0].shared_ps_per_byte, 1u) << "never free";
}

TEST(DeviceTopology, ALinkBetweenDevicesReplacesTheTransports) {
  Topology host = two_levels();
  host.dimensions[0].latency_ns = 50'000;  // ranks wait for a processor
  host.dimensions[0].shared_resource = "processors";
  host.dimensions[0].shared_ps_per_byte = 400;
  const Topology devices = device_topology(host, {{{DeviceWay::kPeers, 3'600'000}, {DeviceWay::kPeers, 400'000}}});
  EXPECT_EQ(devices.dimensions[0].bandwidth_mbps, 3'600'000u);
  EXPECT_EQ(devices.dimensions[1].bandwidth_mbps, 400'000u);
  EXPECT_EQ(devices.dimensions[0].shared_resource, "");
  EXPECT_EQ(devices.dimensions[0].latency_ns, devices.dimensions[1].latency_ns + 30'000);
}

// Four ranks send at once over the links of one device.
TEST(DeviceTopology, RanksOfOneDeviceShareItsLinks) {
  const Topology devices =
      device_topology(two_levels(), {{{DeviceWay::kPeers, 3'600'000}, {DeviceWay::kHost, 200'000}}, 4});
  EXPECT_EQ(devices.dimensions[0].bandwidth_mbps, 900'000u);
  EXPECT_EQ(devices.dimensions[1].bandwidth_mbps, 50'000u);
}

TEST(DeviceTopology, ThroughHostMemoryTheTransportsSpeedHoldsUnlessTheDevicesLinkIsSlower) {
  const Topology host = two_levels();
  const Topology devices = device_topology(host, {{{DeviceWay::kHost, 60'000}, {DeviceWay::kHost, 200'000}}});
  EXPECT_EQ(devices.dimensions[0].bandwidth_mbps, 60'000u);
  EXPECT_EQ(devices.dimensions[1].bandwidth_mbps, 100'000u);
  EXPECT_GT(devices.dimensions[0].latency_ns, facts_of(TransportKind::kShm).latency_ns);
  EXPECT_GT(devices.dimensions[1].latency_ns, host.dimensions[1].latency_ns);
  // Nobody has told any link.
  const Topology unknown = device_topology(host, {});
  EXPECT_EQ(unknown.dimensions[0].bandwidth_mbps, 0u);
  EXPECT_EQ(unknown.dimensions[1].bandwidth_mbps, 100'000u);
  EXPECT_EQ(unknown.dimensions[1].shared_resource, "switch");
}

}  // namespace
}  // namespace trestle
