// The picture of `trestle topo` as frames, blocks and cards, without places and sizes. Internal to src/cli/topo.
// Values; any thread.
#pragma once

#include <string>
#include <vector>

#include "cli/topo/topo_view.h"

namespace trestle {

inline constexpr const char* kRail = "#d3ecd3";
inline constexpr const char* kNoRail = "#eeeeee";
inline constexpr const char* kGpu = "#d8e4f3";

// An interface, a GPU, NVLinks, or a dimension.
struct TopoCard {
  std::string title;
  std::string detail;
  std::string tooltip;
  const char* fill;
};

// A node, or a group of cards. The blocks of a frame stand beside each other.
struct TopoBlock {
  std::string title;
  std::string detail;
  std::vector<int> processors;
  std::vector<int> usable;
  std::vector<TopoCard> cards;
};

struct TopoFrame {
  std::string title;
  std::vector<TopoBlock> blocks;
};

// From the top down; each has a block.
std::vector<TopoFrame> frames_of(const TopoView& view);

}  // namespace trestle
