#include "study/paper_systems.h"

#include <string>

namespace trestle {
namespace {

constexpr auto kRing = DimensionKind::kRing;
constexpr auto kDirect = DimensionKind::kFullyConnected;
constexpr auto kSwitch = DimensionKind::kSwitch;

constexpr PaperSystem kSystems[] = {
    {"2D-SW_SW", {{{16, kSwitch, 1200, 700}, {64, kSwitch, 800, 1700}}}},
    {"3D-SW_SW_SW_homo", {{{16, kSwitch, 800, 700}, {8, kSwitch, 800, 700}, {8, kSwitch, 800, 1700}}}},
    {"3D-SW_SW_SW_hetero", {{{16, kSwitch, 1600, 700}, {8, kSwitch, 800, 700}, {8, kSwitch, 400, 1700}}}},
    {"3D-FC_Ring_SW", {{{8, kDirect, 1400, 700}, {16, kRing, 800, 700}, {8, kSwitch, 400, 1700}}}},
    {"4D-Ring_SW_SW_SW",
     {{{4, kRing, 2000, 20}, {4, kSwitch, 1600, 700}, {8, kSwitch, 800, 700}, {8, kSwitch, 400, 1700}}}},
    {"4D-Ring_FC_Ring_SW",
     {{{4, kRing, 3000, 20}, {8, kDirect, 1400, 700}, {4, kRing, 1200, 700}, {8, kSwitch, 800, 1700}}}},
};

}  // namespace

std::span<const PaperSystem> paper_systems() {
  return kSystems;
}

std::vector<NamedTopology> named_paper_systems() {
  std::vector<NamedTopology> systems;
  for (const PaperSystem& system : kSystems) systems.push_back({std::string(system.name), to_topology(system)});
  return systems;
}

Topology to_topology(const PaperSystem& system) {
  Topology topology;
  topology.reason = "system " + std::string(system.name) + " of Themis, table 2";
  for (const PaperDimension& each : system.dimensions) {
    if (each.size == 0) break;
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = each.size;
    dimension.kind = each.kind;
    dimension.bandwidth_mbps = uint64_t{each.bandwidth_gbps} * 1000;
    dimension.latency_ns = each.latency_ns;
  }
  return topology;
}

}  // namespace trestle
