#include <algorithm>
#include <array>

#include "base/cpu/numa.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

constexpr size_t kMostRanks = 64;   // that get a line
constexpr size_t kMostOthers = 16;  // the same of hosts

using Lines = std::vector<std::string>;

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

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

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " ") + text;
  return all;
}

Row row_of(const MachineInterface& one) {
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

// Writes the interfaces of all nodes with the same columns.
class InterfaceTable {
 public:
  explicit InterfaceTable(const Machine& machine) : machine_(machine) {
    for (const MachineInterface& one : machine.interfaces) {
      rows_.push_back(row_of(one));
      for (size_t c = 0; c < kColumns; ++c) widths_[c] = std::max(widths_[c], rows_.back()[c].size());
    }
  }

  // Those of a node; -1: those of no node that the machine has.
  void add(int node, const std::string& indent, Lines& lines) const {
    const auto is_known = [this](int number) {
      return std::ranges::find(machine_.nodes, number, &MachineNode::number) != machine_.nodes.end();
    };
    for (size_t i = 0; i < rows_.size(); ++i) {
      const int its = machine_.interfaces[i].interface.facts.numa_node;
      if ((is_known(its) ? its : -1) == node) lines.push_back(indent + text_of(rows_[i]));
    }
  }

 private:
  std::string text_of(const Row& row) const {
    std::string text;
    for (size_t c = 0; c + 1 < kColumns; ++c) text += padded(row[c], widths_[c]) + "  ";
    return text + row[kColumns - 1];
  }

  const Machine& machine_;
  std::vector<Row> rows_;
  std::array<size_t, kColumns> widths_{};
};

std::string node_line(const MachineNode& node) {
  std::string text = "node " + std::to_string(node.number) + ": " + memory_words(node.memory_bytes);
  if (node.processors.empty()) return text + ", no processors";
  return text + ", processors " + processors_text(node.processors) + " (" + usable_words(node.usable, node.processors) +
         ")";
}

Lines node_lines(const Machine& machine, int package, const InterfaceTable& interfaces) {
  Lines lines;
  for (const MachineNode& node : machine.nodes) {
    if (node.package != package) continue;
    lines.push_back(node_line(node));
    interfaces.add(node.number, "  ", lines);
  }
  return lines;
}

std::string package_title(const MachinePackage& package) {
  std::string title = package.number < 0 ? "package unknown" : "package " + std::to_string(package.number);
  if (package.cores > 0) title += ", " + std::to_string(package.cores) + (package.cores == 1 ? " core" : " cores");
  return title;
}

std::string machine_text(const Machine& machine) {
  std::string text = "host " + machine.hostname + ": " + summary_text(machine) + "\nread from " + machine.source;
  if (!machine.boot_id.empty()) text += "; boot id " + machine.boot_id;
  text += "\n\n";
  const InterfaceTable interfaces(machine);
  std::vector<Box> boxes;
  for (const MachinePackage& package : machine.packages) {
    Lines lines;
    if (package.number >= 0) lines = node_lines(machine, package.number, interfaces);
    if (lines.empty())
      lines.push_back("processors " + processors_text(package.processors) + " (" +
                      usable_words(package.usable, package.processors) + ")");
    boxes.push_back({package_title(package), lines});
  }
  const Lines apart = node_lines(machine, -1, interfaces);
  if (!apart.empty()) boxes.push_back({"nodes of no single package", apart});
  text += text_of(boxes);
  Lines rest;
  interfaces.add(-1, "  ", rest);
  if (!rest.empty()) text += "interfaces at no known node:\n";
  for (const std::string& one : rest) text += one + "\n";
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
  const size_t shown = std::min(view.ranks.size(), kMostRanks);
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
