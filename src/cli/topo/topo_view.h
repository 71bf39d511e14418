// TopoView: what `trestle topo` shows: this host, the dimensions if there are any, and the hosts of the job's ranks.
// Text, JSON and SVG are made from it.
//
// A value. All functions are pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "topology/topology.h"

namespace trestle {

// The rails that a dimension has on this host.
struct DimensionRailsView {
  bool wanted = false;           // its transport uses interfaces, as far as that is known
  std::vector<LocalRail> rails;  // none: see reason
  std::string reason;            // why there are none
};

// A rank of the job that the command is a part of.
struct RankView {
  int32_t rank = 0;
  std::string host;        // its name; two hosts may have the same one
  int32_t host_index = 0;  // equal: same host
  std::string processors;  // where it may run: "0-3"; "": not known
};

// A host of the job other than the drawn one.
struct HostView {
  std::string name;
  int32_t host_index = 0;
  std::string summary;  // summary_text() of its machine
};

struct TopoView {
  Machine machine;
  std::optional<Topology> topology;
  std::vector<DimensionRailsView> rails;  // by dimension of the topology
  std::vector<RankView> ranks;            // by rank; empty: no launcher has started the command
  std::vector<HostView> others;
};

// A drawing and tables. Lines have no fixed width.
std::string topo_text(const TopoView& view);
// One object; docs/topo.md has its members. Where there are dimensions, it is a topology file too.
std::string topo_json(const TopoView& view);
// A picture of packages, nodes, processors, GPUs, interfaces and dimensions. The ranks are left out.
std::string topo_svg(const TopoView& view);

// "2 packages, 4 NUMA nodes, 16 cores, 32 processors (4-7 usable), 8 GPUs". A host without GPUs does not count them.
std::string summary_text(const Machine& machine);
// "eth0 25 Gb/s, eth1 10 Gb/s"; "none" with the reason.
std::string rails_text(const DimensionRailsView& view);
std::string rate_words(uint64_t rate_bps);  // "25 Gb/s", "2.5 Gb/s", "100 Mb/s"; "speed unknown" for 0
std::string memory_words(uint64_t bytes);   // "62.8 GiB", "512 MiB"; "memory unknown" for 0
// "rail, 10.0.0.0/24", "no rail: down".
std::string rail_words(const MachineInterface& interface);
// "all usable", "none usable", "usable: 4-7".
std::string usable_words(const std::vector<int>& usable, const std::vector<int>& processors);

// ---- GPUs

std::string nvlinks_words(const Gpu& gpu);  // "18 NVLinks", "no NVLink", "NVLinks unknown"
// "eth1 (same PCIe switch)", "eth0, eth1 (another NUMA node)"; "none".
std::string nearest_words(const Gpu& gpu);
// "GPU-2d0e5a53": as much of the UUID as CUDA_VISIBLE_DEVICES needs to know it; "-" if it is not known.
std::string short_uuid(const Gpu& gpu);

// GPUs that NVLinks join, and how.
struct GpuLinkWords {
  std::string gpus;   // "0000:07:00.0 - 0000:0f:00.0", "all 8 GPUs"
  std::string links;  // "4 NVLinks, 100 GB/s", "18 NVLinks each, through NVSwitches, 478.1 GB/s"
};
// A line for each pair that is joined, or one for all if switches join all GPUs alike. Of more than `most` pairs the
// last line says how many are left out.
std::vector<GpuLinkWords> gpu_link_words(const HostGpus& gpus, size_t most = 64);

}  // namespace trestle
