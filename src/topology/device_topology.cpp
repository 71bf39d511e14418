#include "topology/device_topology.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/transport_kinds.h"

namespace trestle {
namespace {

// One piece of work of a device, from its launch until the host has seen its end. A round figure; a launch alone takes
// 2 to 5 us.
constexpr uint64_t kWork_ns = 12'000;
// What a thread spends on the launch of a copy or a reduction.
constexpr uint64_t kLaunch_ns = 3'000;
// The segments that the engine cuts for devices (memory/place.h).
constexpr uint64_t kSegmentBytes = uint64_t{4} << 20;
constexpr uint64_t kPsPerByteAtOneMbps = 8'000'000;

struct Generation {
  int compute_capability;
  DeviceSpeeds speeds;
};

// Memory, NVLinks and PCIe of V100 (900 GB/s; 6 links of 25 GB/s; gen 3), A100 (2039; 12 of 25; gen 4), H100 (3350; 18
// of 25; gen 5) and B200 (8000; 18 of 50; gen 5), from NVIDIA's data sheets. PCIe without its line code.
constexpr Generation kGenerations[] = {
    {70, {7'200'000, 1'200'000, 126'030}},
    {80, {16'312'000, 2'400'000, 252'061}},
    {90, {26'800'000, 3'600'000, 504'123}},
    {100, {64'000'000, 7'200'000, 504'123}},
};

int32_t ranks_of_a_device(const Topology& host, const std::vector<DeviceLink>& links) {
  int32_t ranks = 1;
  for (size_t d = 0; d < links.size(); ++d) {
    if (links[d].way == DeviceWay::kOneDevice) ranks *= host.dimensions[d].size;
  }
  return ranks;
}

// A byte that is sent is read and written in the device's memory, which all of its ranks share.
void share_device(Dimension& dimension, uint64_t mbps, int32_t ranks) {
  dimension.shared_resource = "device";
  dimension.shared_ps_per_byte = std::max<uint64_t>(1, 2 * kPsPerByteAtOneMbps * static_cast<uint64_t>(ranks) / mbps);
}

// A message is copied out, travels, and is copied in or added up.
void go_through_host(Dimension& dimension, uint64_t mbps) {
  const TransportFacts& facts = facts_of(dimension.transport);
  const uint64_t latency_ns = dimension.latency_ns == kNominalLatency ? facts.latency_ns : dimension.latency_ns;
  dimension.latency_ns = latency_ns + 2 * kWork_ns;
  const uint64_t known_mbps = dimension.bandwidth_mbps == 0 ? facts.bandwidth_mbps : dimension.bandwidth_mbps;
  if (mbps != 0 && mbps < known_mbps) dimension.bandwidth_mbps = mbps;
  dimension.data = DataCosts{facts.message_ns + 2 * kLaunch_ns, 0, kSegmentBytes};
}

void read_in_place(Dimension& dimension, const DeviceLink& link) {
  CHECK(link.mbps != 0, "a path between devices without a speed");
  dimension.latency_ns = kWork_ns;
  dimension.bandwidth_mbps = link.mbps;
  dimension.shared_resource.clear();
  dimension.shared_ps_per_byte = 0;
  dimension.unknown_network = false;
  // The work that reads the messages counts once, in the latency of the step.
  dimension.data = DataCosts{facts_of(dimension.transport).message_ns, 0, kSegmentBytes};
}

}  // namespace

const char* to_string(DeviceWay way) {
  switch (way) {
    case DeviceWay::kOneDevice:
      return "within one device";
    case DeviceWay::kPeers:
      return "devices read each other";
    case DeviceWay::kHost:
      return "through host memory";
  }
  return "by no known way";
}

DeviceLink worse(const DeviceLink& a, const DeviceLink& b) {
  if (a.way != b.way) return a.way > b.way ? a : b;
  return {a.way, std::min(a.mbps, b.mbps)};
}

const DeviceSpeeds& nominal_speeds(int compute_capability) {
  const auto later = std::ranges::upper_bound(kGenerations, compute_capability, {}, &Generation::compute_capability);
  return (later == std::begin(kGenerations) ? later : std::prev(later))->speeds;
}

Topology device_topology(const Topology& host, const std::vector<DeviceLink>& links) {
  CHECK(links.size() <= host.dimensions.size(), "links of devices in dimensions that do not exist");
  Topology topology = host;
  const int32_t ranks = ranks_of_a_device(host, links);
  const uint64_t reduce_mbps = nominal_speeds(0).memory_mbps;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    const DeviceLink link = d < links.size() ? links[d] : DeviceLink{};
    if (link.way == DeviceWay::kHost) {
      go_through_host(dimension, link.mbps);
    } else {
      read_in_place(dimension, link);
    }
    dimension.data->reduce_mbps = link.way == DeviceWay::kOneDevice ? link.mbps : reduce_mbps;
    if (link.way == DeviceWay::kOneDevice) share_device(dimension, link.mbps, ranks);
  }
  return topology;
}

}  // namespace trestle
