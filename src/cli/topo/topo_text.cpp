#include <algorithm>

#include "base/cpu/numa.h"
#include "cli/topo/topo_node_table.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

constexpr size_t kMostRankLines = 64;  // that get a line
constexpr size_t kMostOthers = 16;     // hosts that get a line

using Lines = std::vector<std::string>;

// A frame around lines, with a title in its upper edge.
struct Box {
  std::string title;
  Lines lines;
};

// All as wide as the widest.
std::string text_of(const std::vector<Box>& boxes) {
  size_t width = 0;
  for (const Box& box : boxes) {
    width = std::max(width, box.title.size() + 1);
    for (const std::string& one : box.lines) width = std::max(width, one.size());
  }
  std::string text;
  for (const Box& box : boxes) {
    text += "+- " + box.title + " " + std::string(width - box.title.size(), '-') + "+\n";
    for (const std::string& one : box.lines) text += "| " + padded(one, width) + " |\n";
    text += "+" + std::string(width + 2, '-') + "+\n";
  }
  return text;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " ") + text;
  return all;
}

std::vector<std::string> cells_of(const MachineInterface& one) {
  const InterfaceFacts& facts = one.interface.facts;
  std::string pci = facts.pci.empty() ? "-" : "PCI " + facts.pci;
  if (facts.pci_bps != 0) pci += " (" + rate_words(facts.pci_bps) + ")";
  return {one.interface.name,
          rate_words(one.rate_bps),
          one.state(),
          pci,
          one.addresses.empty() ? "no address" : joined(one.addresses),
          rail_words(one)};
}

std::vector<std::string> cells_of(const Gpu& gpu) {
  return {"GPU " + gpu.pci,
          gpu.name.empty() ? "name unknown" : gpu.name,
          short_uuid(gpu),
          memory_words(gpu.memory_bytes),
          "PCIe " + rate_words(gpu.pci_bps),
          nvlinks_words(gpu),
          "nearest: " + nearest_words(gpu)};
}

struct Tables {
  NodeTable gpus;
  NodeTable interfaces;
};

Tables tables_of(const Machine& machine) {
  Tables tables{NodeTable(machine.nodes), NodeTable(machine.nodes)};
  for (const Gpu& gpu : machine.gpus.list) tables.gpus.add(gpu.numa_node, cells_of(gpu));
  for (const MachineInterface& one : machine.interfaces)
    tables.interfaces.add(one.interface.facts.numa_node, cells_of(one));
  return tables;
}

std::string node_line(const MachineNode& node) {
  std::string text = "node " + std::to_string(node.number) + ": " + memory_words(node.memory_bytes);
  if (node.processors.empty()) return text + ", no processors";
  return text + ", processors " + processors_text(node.processors) + " (" + usable_words(node.usable, node.processors) +
         ")";
}

Lines node_lines(const Machine& machine, int package, const Tables& tables) {
  Lines lines;
  for (const MachineNode& node : machine.nodes) {
    if (node.package != package) continue;
    lines.push_back(node_line(node));
    tables.gpus.write(node.number, "  ", lines);
    tables.interfaces.write(node.number, "  ", lines);
  }
  return lines;
}

std::string package_title(const MachinePackage& package) {
  std::string title = package.number < 0 ? "package unknown" : "package " + std::to_string(package.number);
  if (package.cores > 0) title += ", " + std::to_string(package.cores) + (package.cores == 1 ? " core" : " cores");
  return title;
}

std::vector<Box> boxes_of(const Machine& machine, const Tables& tables) {
  std::vector<Box> boxes;
  for (const MachinePackage& package : machine.packages) {
    Lines lines;
    if (package.number >= 0) lines = node_lines(machine, package.number, tables);
    if (lines.empty())
      lines.push_back("processors " + processors_text(package.processors) + " (" +
                      usable_words(package.usable, package.processors) + ")");
    boxes.push_back({package_title(package), lines});
  }
  const Lines apart = node_lines(machine, -1, tables);
  if (!apart.empty()) boxes.push_back({"nodes of no single package", apart});
  return boxes;
}

// The lines of a table that are in no box.
std::string rest_of(const NodeTable& table, const char* title) {
  Lines rest;
  table.write(-1, "  ", rest);
  std::string text = rest.empty() ? "" : std::string(title) + "\n";
  for (const std::string& one : rest) text += one + "\n";
  return text;
}

std::string gpu_links_text(const HostGpus& gpus) {
  const std::vector<GpuLinkWords> words = gpu_link_words(gpus);
  std::string text;
  size_t width = 0;
  for (const GpuLinkWords& one : words) width = std::max(width, one.gpus.size());
  if (!words.empty()) text = "NVLinks between GPUs, speeds one way:\n";
  for (const GpuLinkWords& one : words) text += "  " + padded(one.gpus, width) + "  " + one.links + "\n";
  const bool all_known = std::ranges::all_of(gpus.list, [](const Gpu& gpu) { return gpu.nvlinks >= 0; });
  if (words.empty() && gpus.list.size() > 1 && all_known) text = "NVLinks between GPUs: none\n";
  for (const std::string& note : gpus.notes) text += note + "\n";
  return text;
}

std::string machine_text(const Machine& machine) {
  std::string text = "host " + machine.hostname + ": " + summary_text(machine) + "\nread from " + machine.source;
  if (!machine.boot_id.empty()) text += "; boot id " + machine.boot_id;
  const Tables tables = tables_of(machine);
  text += "\n\n" + text_of(boxes_of(machine, tables));
  text += rest_of(tables.gpus, "GPUs at no known node:") + gpu_links_text(machine.gpus);
  text += rest_of(tables.interfaces, "interfaces at no known node:");
  if (!machine.no_rails.empty()) text += machine.no_rails + "\n";
  return text;
}

std::string dimensions_text(const TopoView& view) {
  std::string text = "\n" + to_text(*view.topology);
  for (size_t d = 0; d < view.rails.size(); ++d) {
    if (!view.rails[d].wanted) continue;
    text += "rails of dimension " + std::to_string(d + 1) + " here: " + rails_text(view.rails[d]) + "\n";
  }
  return text;
}

std::string ranks_text(const TopoView& view) {
  int32_t hosts = 0;
  size_t width = 0;
  for (const RankView& one : view.ranks) {
    hosts = std::max(hosts, one.host_index + 1);
    width = std::max(width, one.host.size());
  }
  std::string text = "\n" + std::to_string(view.ranks.size()) + " ranks on " + std::to_string(hosts) +
                     (hosts == 1 ? " host\n" : " hosts; the drawing is of rank 0's\n");
  const size_t shown = std::min(view.ranks.size(), kMostRankLines);
  for (size_t r = 0; r < shown; ++r) {
    const RankView& one = view.ranks[r];
    text += padded("rank " + std::to_string(one.rank), 10) + " " + padded(one.host, width) + "  " +
            (one.processors.empty() ? "processors unknown" : "processors " + one.processors) + "\n";
  }
  if (shown < view.ranks.size())
    text += "left out: " + std::to_string(view.ranks.size() - shown) + " more ranks; --json has all\n";
  const size_t hosts_shown = std::min(view.others.size(), kMostOthers);
  for (size_t i = 0; i < hosts_shown; ++i) text += "host " + view.others[i].name + ": " + view.others[i].summary + "\n";
  if (hosts_shown < view.others.size())
    text += "left out: " + std::to_string(view.others.size() - hosts_shown) + " more hosts; --json has all\n";
  return text;
}

}  // namespace

std::string topo_text(const TopoView& view) {
  std::string text = machine_text(view.machine);
  if (view.topology) text += dimensions_text(view);
  if (!view.ranks.empty()) text += ranks_text(view);
  return text;
}

}  // namespace trestle
