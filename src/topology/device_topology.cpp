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

uint64_t known_latency_ns(const Dimension& dimension) {
  return dimension.latency_ns == kNominalLatency ? facts_of(dimension.transport).latency_ns : dimension.latency_ns;
}

// A byte that is sent is read and written in the device's memory, once or, through an outbox, twice. All ranks of the
// device share it.
void share_device(Dimension& dimension, const DeviceLink& link, uint64_t ranks) {
  const uint64_t passes = link.outbox ? 4 : 2;
  dimension.shared_resource = "device memory";
  dimension.shared_ps_per_byte = (passes * kPsPerByteAtOneMbps * ranks + link.mbps - 1) / link.mbps;
}

// A message is copied out, travels, and is copied in or added up.
void go_through_host(Dimension& dimension, uint64_t mbps) {
  const TransportFacts& facts = facts_of(dimension.transport);
  dimension.latency_ns = known_latency_ns(dimension) + 2 * kWork_ns;
  const uint64_t known_mbps = dimension.bandwidth_mbps == 0 ? facts.bandwidth_mbps : dimension.bandwidth_mbps;
  if (mbps != 0 && mbps < known_mbps) dimension.bandwidth_mbps = mbps;
  dimension.data = DataCosts{facts.message_ns + 2 * kLaunch_ns, 0, kDeviceSegmentBytes};
}

// The sender's thread tells the receiver's where the data lies. The work that reads the messages counts once, in the
// latency of the step; a copy into the outbox is one more, and one per message.
void read_in_place(Dimension& dimension, const DeviceLink& link, uint64_t mbps) {
  const uint64_t copies = link.outbox ? 1 : 0;
  dimension.latency_ns = known_latency_ns(dimension) + (1 + copies) * kWork_ns;
  dimension.bandwidth_mbps = mbps;
  dimension.shared_resource.clear();
  dimension.shared_ps_per_byte = 0;
  dimension.unknown_network = false;
  dimension.data = DataCosts{facts_of(dimension.transport).message_ns + copies * kLaunch_ns, 0, kDeviceSegmentBytes};
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
  DeviceLink worst = a.way > b.way ? a : b;
  if (a.way == b.way) worst.mbps = std::min(a.mbps, b.mbps);
  worst.outbox = worst.way != DeviceWay::kHost && (a.outbox || b.outbox);
  return worst;
}

const DeviceSpeeds& nominal_speeds(int compute_capability) {
  const auto later = std::ranges::upper_bound(kGenerations, compute_capability, {}, &Generation::compute_capability);
  return (later == std::begin(kGenerations) ? later : std::prev(later))->speeds;
}

Topology device_topology(const Topology& host, const DeviceLinks& links) {
  CHECK(links.by_dimension.size() <= host.dimensions.size(), "links of devices in dimensions that do not exist");
  Topology topology = host;
  const auto ranks = static_cast<uint64_t>(std::max(links.ranks_per_device, 1));
  const uint64_t slowest_memory_mbps = nominal_speeds(0).memory_mbps;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    const DeviceLink link = d < links.by_dimension.size() ? links.by_dimension[d] : DeviceLink{};
    CHECK(link.way == DeviceWay::kHost || link.mbps != 0, "a path between devices without a speed");
    const uint64_t share_mbps = link.mbps == 0 ? 0 : std::max<uint64_t>(1, link.mbps / ranks);
    if (link.way == DeviceWay::kHost) {
      go_through_host(dimension, share_mbps);
    } else if (link.way == DeviceWay::kPeers) {
      read_in_place(dimension, link, share_mbps);
    } else {
      read_in_place(dimension, link, link.mbps);
      share_device(dimension, link, ranks);
    }
    dimension.data->reduce_mbps = link.way == DeviceWay::kOneDevice ? link.mbps : slowest_memory_mbps;
  }
  return topology;
}

}  // namespace trestle
