#include "comm/setup/device_links.h"

#include <charconv>
#include <utility>

#include "comm/device/opened_devices.h"
#include "control_mesh/byte_text.h"

namespace trestle {
namespace {

constexpr uint64_t kMostMbps = 1'000'000'000;  // as a topology file may say

struct ToldDevice {
  int compute_capability = 0;
  std::string pci;
};

// A text that is none gives a device of which nothing is known.
ToldDevice read_device(const std::string& told) {
  ToldDevice device;
  const size_t space = told.find(' ');
  if (space == std::string::npos) return device;
  std::from_chars(told.data(), told.data() + space, device.compute_capability);
  device.pci = told.substr(space + 1);
  return device;
}

// A driver that does not answer leaves a link at the speed of PCIe: this only chooses schedules.
bool joined_by_nvlink(int device, const std::string& pci) {
  const auto opened = OpenedDevices::process().open(device);
  if (!opened.ok()) return false;
  const auto joined = opened.value()->device().joined_by_nvlink(pci);
  return joined.ok() && joined.value();
}

DeviceLink link_between(int device, PeerPath path, const ToldDevice& mine, const ToldDevice& other) {
  const DeviceSpeeds& speeds = nominal_speeds(mine.compute_capability);
  if (path == PeerPath::kNone) return {DeviceWay::kHost, speeds.pcie_mbps};
  if (path == PeerPath::kSameDevice || mine.pci == other.pci) return {DeviceWay::kOneDevice, speeds.memory_mbps};
  return {DeviceWay::kPeers, joined_by_nvlink(device, other.pci) ? speeds.nvlink_mbps : speeds.pcie_mbps};
}

}  // namespace

Result<std::string> tell_device(int device) {
  const DeviceInfo& info = TRY(OpenedDevices::process().open(device))->device().info();
  return std::to_string(info.compute_capability) + " " + info.pci;
}

std::vector<DeviceLink> links_of_rank(const Topology& topology, int32_t rank, int device, const PeerPaths& paths,
                                      const std::vector<std::string>& told) {
  const ToldDevice mine = read_device(told[static_cast<size_t>(rank)]);
  const uint64_t fastest_mbps = nominal_speeds(mine.compute_capability).memory_mbps;
  std::vector<DeviceLink> links(topology.dimensions.size(), {DeviceWay::kOneDevice, fastest_mbps});
  for (int32_t peer = 0; peer < topology.ranks(); ++peer) {
    const uint8_t d = topology.outermost_difference(rank, peer);
    if (d == kFlat) continue;
    const ToldDevice other = read_device(told[static_cast<size_t>(peer)]);
    links[d] = worse(links[d], link_between(device, paths.to(peer), mine, other));
  }
  return links;
}

std::string encode(const std::vector<DeviceLink>& links) {
  ByteWriter out;
  out.integer(static_cast<uint32_t>(links.size()));
  for (const DeviceLink& link : links) out.integer(static_cast<uint8_t>(link.way)).integer(link.mbps);
  return out.take();
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
      sane = in.ok() && way <= static_cast<uint8_t>(DeviceWay::kHost) && mbps != 0 && mbps <= kMostMbps;
      worst[d] = worse(worst[d], {static_cast<DeviceWay>(way), mbps});
    }
    if (!sane || !in.at_end())
      return Error{Code::kRemoteError, names[r] + ": what it says about paths between devices cannot be read"};
  }
  return worst;
}

}  // namespace trestle
