#include "cli/topo/topo_frames.h"

#include <algorithm>

#include "base/cpu/numa.h"

namespace trestle {
namespace {

TopoCard card_of(const MachineInterface& one) {
  std::string tooltip = std::string(one.state());
  if (!one.interface.facts.pci.empty()) tooltip += ", PCI " + one.interface.facts.pci;
  for (const std::string& address : one.addresses) tooltip += ", " + address;
  return {one.interface.name + ", " + rate_words(one.rate_bps), rail_words(one), tooltip, one.rail ? kRail : kNoRail};
}

TopoCard card_of(const Gpu& gpu) {
  const std::string name = gpu.name.empty() ? "name unknown" : gpu.name;
  const std::string uuid = gpu.uuid.empty() ? "UUID unknown" : gpu.uuid;
  return {"GPU " + gpu.pci + ", " + memory_words(gpu.memory_bytes), name + ", " + nvlinks_words(gpu),
          uuid + ", PCIe " + rate_words(gpu.pci_bps) + ", nearest interface: " + nearest_words(gpu), kGpu};
}

TopoBlock block_of(const Machine& machine, const MachineNode& node) {
  TopoBlock block;
  block.title = "node " + std::to_string(node.number) + ", " + memory_words(node.memory_bytes);
  block.detail = "no processors";
  if (!node.processors.empty())
    block.detail = "processors " + processors_text(node.processors) + ", " + usable_words(node.usable, node.processors);
  block.processors = node.processors;
  block.usable = node.usable;
  for (const Gpu& gpu : machine.gpus.list) {
    if (gpu.numa_node == node.number) block.cards.push_back(card_of(gpu));
  }
  for (const MachineInterface& one : machine.interfaces) {
    if (one.interface.facts.numa_node == node.number) block.cards.push_back(card_of(one));
  }
  return block;
}

std::vector<TopoBlock> blocks_of(const Machine& machine, int package) {
  std::vector<TopoBlock> blocks;
  for (const MachineNode& node : machine.nodes) {
    if (node.package == package) blocks.push_back(block_of(machine, node));
  }
  return blocks;
}

TopoFrame frame_of(const Machine& machine, const MachinePackage& package) {
  TopoFrame frame{package.number < 0 ? "package unknown" : "package " + std::to_string(package.number), {}};
  if (package.number >= 0) frame.blocks = blocks_of(machine, package.number);
  // The package is unknown, or its processors belong to a node that it shares with other packages.
  if (frame.blocks.empty())
    frame.blocks.push_back({"processors " + processors_text(package.processors),
                            usable_words(package.usable, package.processors),
                            package.processors,
                            package.usable,
                            {}});
  return frame;
}

bool has_node(const Machine& machine, int node) {
  return std::ranges::find(machine.nodes, node, &MachineNode::number) != machine.nodes.end();
}

TopoFrame gpus_apart(const Machine& machine) {
  TopoBlock block;
  for (const Gpu& gpu : machine.gpus.list) {
    if (!has_node(machine, gpu.numa_node)) block.cards.push_back(card_of(gpu));
  }
  if (block.cards.empty()) return {};
  return {"GPUs at no known node", {block}};
}

TopoFrame gpu_links_frame(const HostGpus& gpus) {
  TopoBlock block;
  for (const GpuLinkWords& one : gpu_link_words(gpus)) block.cards.push_back({one.gpus, one.links, "", kGpu});
  for (const std::string& note : gpus.notes) block.cards.push_back({"not known", note, "", kNoRail});
  if (block.cards.empty()) return {};
  return {"NVLinks between GPUs, speeds one way", {block}};
}

TopoFrame interfaces_apart(const Machine& machine) {
  TopoBlock block;
  for (const MachineInterface& one : machine.interfaces) {
    if (!has_node(machine, one.interface.facts.numa_node)) block.cards.push_back(card_of(one));
  }
  if (block.cards.empty()) return {};
  return {"interfaces at no known node", {block}};
}

TopoFrame dimensions_frame(const TopoView& view) {
  TopoBlock block;
  for (size_t d = 0; d < view.topology->dimensions.size(); ++d) {
    const Dimension& dimension = view.topology->dimensions[d];
    TopoCard card{"dimension " + std::to_string(d + 1) + ": " + std::to_string(dimension.size) + " ranks", "", "",
                  kNoRail};
    card.detail = std::string(to_string(dimension.kind)) + ", " + to_string(dimension.transport) + ", ";
    card.detail += dimension.bandwidth_mbps == 0 ? "nominal speed" : rate_words(dimension.bandwidth_mbps * 1'000'000);
    if (d < view.rails.size() && view.rails[d].wanted) {
      card.tooltip = "rails here: " + rails_text(view.rails[d]);
      if (!view.rails[d].rails.empty()) card.fill = kRail;
    }
    block.cards.push_back(card);
  }
  return {std::to_string(view.topology->ranks()) + " ranks; " + view.topology->reason, {block}};
}

}  // namespace

std::vector<TopoFrame> frames_of(const TopoView& view) {
  std::vector<TopoFrame> frames;
  for (const MachinePackage& package : view.machine.packages) frames.push_back(frame_of(view.machine, package));
  frames.push_back({"nodes of no single package", blocks_of(view.machine, -1)});
  frames.push_back(gpus_apart(view.machine));
  frames.push_back(gpu_links_frame(view.machine.gpus));
  frames.push_back(interfaces_apart(view.machine));
  if (view.topology) frames.push_back(dimensions_frame(view));
  std::erase_if(frames, [](const TopoFrame& frame) { return frame.blocks.empty(); });
  return frames;
}

}  // namespace trestle
