#include "comm/setup/device_links.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/text/byte_text.h"
#include "comm/device/opened_devices.h"
#include "comm/setup/topology_agreement.h"

namespace trestle {
namespace {

struct ToldDevice {
  DeviceSpeeds speeds;
  std::string pci;
};

// Of a device whose text cannot be read nothing is known.
ToldDevice read_device(const std::string& told) {
  ToldDevice device;
  int compute_capability = 0;
  uint64_t memory_mbps = 0;
  const char* const end = told.data() + told.size();
  const auto capability = std::from_chars(told.data(), end, compute_capability);
  device.speeds = nominal_speeds(compute_capability);
  if (capability.ec != std::errc() || capability.ptr == end) return device;
  const auto memory = std::from_chars(capability.ptr + 1, end, memory_mbps);
  if (memory.ec != std::errc() || memory.ptr == end) return device;
  if (memory_mbps != 0) device.speeds.memory_mbps = std::min(memory_mbps, kMostMbps);
  device.pci.assign(memory.ptr + 1, end);
  return device;
}

// CUDA knows only of the devices that this process sees. A driver that does not answer leaves a link at the speed of
// PCIe: this only chooses schedules.
bool joined_by_nvlink(int device, const std::string& pci) {
  const auto opened = OpenedDevices::process().open(device);
  if (!opened.ok()) return false;
  const auto joined = opened.value()->device().joined_by_nvlink(pci);
  return joined.ok() && joined.value();
}

DeviceLink link_between(int device, PeerPath path, const ToldDevice& mine, const ToldDevice& other,
                        NvlinkPairs& nvlinks) {
  const DeviceSpeeds& speeds = mine.speeds;
  // A rank without a device limits nothing.
  if (!joins_devices(path)) return {DeviceWay::kHost, mine.pci.empty() ? kMostMbps : speeds.pcie_mbps};
  const bool outbox = path == PeerPath::kOtherProcess;
  if (path == PeerPath::kSameDevice || mine.pci == other.pci)
    return {DeviceWay::kOneDevice, speeds.memory_mbps, outbox};
  const auto by_nvml = nvlinks.between(mine.pci, other.pci);
  return {DeviceWay::kPeers, mbps_between(speeds, by_nvml, joined_by_nvlink(device, other.pci)), outbox};
}

}  // namespace

Result<std::string> tell_device(int device) {
  const DeviceInfo& info = TRY(OpenedDevices::process().open(device))->device().info();
  return std::to_string(info.compute_capability) + " " + std::to_string(info.memory_mbps) + " " + info.pci;
}

std::string pci_of(const std::string& told) {
  return read_device(told).pci;
}

uint64_t mbps_between(const DeviceSpeeds& speeds, const std::optional<GpuLink>& by_nvml, bool by_driver) {
  const bool told = by_nvml && by_nvml->nvlinks > 0;
  if (!told && !by_driver) return speeds.pcie_mbps;
  const uint64_t told_mbps = told ? by_nvml->rate_bps / 1'000'000 : 0;
  return told_mbps == 0 ? speeds.nvlink_mbps : std::min(told_mbps, speeds.nvlink_mbps);
}

std::vector<DeviceLink> links_of_rank(const Topology& topology, int32_t rank, int device, const PeerPaths& paths,
                                      const std::vector<std::string>& told, NvlinkPairs& nvlinks) {
  const ToldDevice mine = read_device(told[static_cast<size_t>(rank)]);
  std::vector<DeviceLink> links(topology.dimensions.size(), {DeviceWay::kOneDevice, kMostMbps});
  for (int32_t peer = 0; peer < topology.ranks(); ++peer) {
    const uint8_t d = topology.outermost_difference(rank, peer);
    if (d == kFlat) continue;
    const ToldDevice other = read_device(told[static_cast<size_t>(peer)]);
    links[d] = worse(links[d], link_between(device, paths.to(peer), mine, other, nvlinks));
  }
  return links;
}

void divide_paths(PeerPaths& paths, bool all, int32_t rank, int device, const std::vector<std::string>& told,
                  NvlinkPairs& nvlinks) {
  const ToldDevice mine = read_device(told[static_cast<size_t>(rank)]);
  const auto has_nvlinks = [&](const ToldDevice& other) {
    if (mine.pci == other.pci) return false;
    const std::optional<GpuLink> by_nvml = nvlinks.between(mine.pci, other.pci);
    return (by_nvml && by_nvml->nvlinks > 0) || joined_by_nvlink(device, other.pci);
  };
  for (int32_t peer = 0; peer < static_cast<int32_t>(told.size()); ++peer) {
    if (peer == rank || !joins_devices(paths.to(peer))) continue;
    if (all || has_nvlinks(read_device(told[static_cast<size_t>(peer)]))) paths.divide(peer);
  }
}

std::string encode(const std::vector<DeviceLink>& links) {
  ByteWriter out;
  out.integer(static_cast<uint32_t>(links.size()));
  for (const DeviceLink& link : links) {
    out.integer(static_cast<uint8_t>(link.way)).integer(link.mbps);
    out.integer(static_cast<uint8_t>(link.outbox));
  }
  return out.take();
}

int32_t ranks_per_device(const std::vector<std::string>& told, const std::vector<std::string>& hosts) {
  std::map<std::pair<std::string, std::string>, int32_t> ranks;
  int32_t most = 1;
  for (size_t r = 0; r < told.size(); ++r) {
    const std::string pci = read_device(told[r]).pci;
    if (!pci.empty()) most = std::max(most, ++ranks[{hosts[r], pci}]);
  }
  return most;
}

Result<std::vector<DeviceLink>> worst_links(const std::vector<std::string>& said, size_t dimensions,
                                            const RankNames& names) {
  std::vector<DeviceLink> worst(dimensions, {DeviceWay::kOneDevice, kMostMbps});
  for (size_t r = 0; r < said.size(); ++r) {
    ByteReader in(said[r]);
    bool sane = in.integer<uint32_t>() == dimensions;
    for (size_t d = 0; d < dimensions && sane; ++d) {
      const auto way = in.integer<uint8_t>();
      const auto mbps = in.integer<uint64_t>();
      const auto outbox = in.integer<uint8_t>();
      sane = in.ok() && way <= static_cast<uint8_t>(DeviceWay::kHost) && mbps != 0 && mbps <= kMostMbps && outbox <= 1;
      worst[d] = worse(worst[d], {static_cast<DeviceWay>(way), mbps, outbox != 0});
    }
    if (!sane || !in.at_end())
      return Error{Code::kRemoteError, names[r] + ": what it says about paths between devices cannot be read"};
  }
  return worst;
}

}  // namespace trestle
