// NodeTable: lines about things that are at NUMA nodes, such as interfaces. The lines of all nodes have the same
// columns. Internal to src/cli/topo. A value; one thread.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"

namespace trestle {

class NodeTable {
 public:
  explicit NodeTable(const std::vector<MachineNode>& nodes);

  // Adds a line. All lines have equally many cells. A node that the machine does not have counts as -1.
  void add(int node, std::vector<std::string> cells);
  // Appends the lines of a node, in the order in which they were added; -1: those of no known node.
  void write(int node, const std::string& indent, std::vector<std::string>& lines) const;

 private:
  struct Row {
    int node;
    std::vector<std::string> cells;
  };

  std::vector<int> nodes_;
  std::vector<Row> rows_;
  std::vector<size_t> widths_;
};

// `text` with blanks behind it.
std::string padded(std::string text, size_t width);

}  // namespace trestle
