#include "cli/topo/topo_node_table.h"

#include <algorithm>

namespace trestle {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

NodeTable::NodeTable(const std::vector<MachineNode>& nodes) {
  for (const MachineNode& node : nodes) nodes_.push_back(node.number);
}

void NodeTable::add(int node, std::vector<std::string> cells) {
  widths_.resize(std::max(widths_.size(), cells.size()));
  for (size_t c = 0; c < cells.size(); ++c) widths_[c] = std::max(widths_[c], cells[c].size());
  const bool is_known = std::ranges::find(nodes_, node) != nodes_.end();
  rows_.push_back({is_known ? node : -1, std::move(cells)});
}

void NodeTable::write(int node, const std::string& indent, std::vector<std::string>& lines) const {
  for (const Row& row : rows_) {
    if (row.node != node) continue;
    std::string text = indent;
    for (size_t c = 0; c + 1 < row.cells.size(); ++c) text += padded(row.cells[c], widths_[c]) + "  ";
    lines.push_back(text + row.cells.back());
  }
}

}  // namespace trestle
