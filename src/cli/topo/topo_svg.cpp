// Packages are frames below each other. A package's nodes stand side by side; a node has a square per processor, and
// its interfaces below them.
#include <algorithm>

#include "base/cpu/numa.h"
#include "cli/svg_writer.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

constexpr double kWidth = 1200;
constexpr double kMargin = 24;
constexpr double kPad = 12;
constexpr double kTitle = 26;       // height of a frame's title
constexpr double kCell = 14;        // of a processor, with its gap
constexpr double kCardHeight = 50;  // of an interface or a dimension, with its gap
constexpr size_t kMostColumns = 4;
constexpr size_t kMostCells = 512;  // a node with more processors has only its text

constexpr const char* kUsable = "#2a788e";
constexpr const char* kNotUsable = "#d9d9d9";
constexpr const char* kRail = "#d3ecd3";
constexpr const char* kNoRail = "#eeeeee";

struct Card {
  std::string title;
  std::string detail;
  std::string tooltip;
  const char* fill;
};

Card card_of(const MachineInterface& one) {
  std::string tooltip = std::string(one.state());
  if (!one.interface.facts.pci.empty()) tooltip += ", PCI " + one.interface.facts.pci;
  for (const std::string& address : one.addresses) tooltip += ", " + address;
  return {one.interface.name + ", " + rate_words(one.rate_bps), rail_words(one), tooltip, one.rail ? kRail : kNoRail};
}

// What stands in one frame beside others: a node, or a group of cards.
struct Block {
  std::string title;
  std::string detail;
  std::vector<int> processors;
  std::vector<int> usable;
  std::vector<Card> cards;
};

struct Frame {
  std::string title;
  std::vector<Block> blocks;
};

size_t columns_of(const Frame& frame) {
  return std::clamp<size_t>(frame.blocks.size(), 1, kMostColumns);
}

double block_width(const Frame& frame) {
  const auto columns = static_cast<double>(columns_of(frame));
  return (kWidth - 2 * kMargin - (columns + 1) * kPad) / columns;
}

size_t cells_per_row(double width) {
  return std::max<size_t>(1, static_cast<size_t>((width - 2 * kPad) / kCell));
}

double cells_height(const Block& block, double width) {
  if (block.processors.empty() || block.processors.size() > kMostCells) return 0;
  const size_t rows = (block.processors.size() - 1) / cells_per_row(width) + 1;
  return static_cast<double>(rows) * kCell + 6;
}

// Narrow blocks have their cards below each other, wide ones beside each other.
size_t cards_per_row(double width) {
  return std::max<size_t>(1, static_cast<size_t>(width / 270));
}

double cards_height(const Block& block, double width) {
  const size_t per_row = cards_per_row(width);
  return static_cast<double>((block.cards.size() + per_row - 1) / per_row) * kCardHeight;
}

double block_height(const Block& block, double width) {
  const double texts = block.title.empty() ? kPad : block.detail.empty() ? 30 : 48;
  return texts + cells_height(block, width) + cards_height(block, width) + 4;
}

// Of the blocks that stand in one row, the highest.
double row_height(const Frame& frame, size_t first) {
  double height = 0;
  const size_t end = std::min(first + columns_of(frame), frame.blocks.size());
  for (size_t i = first; i < end; ++i) height = std::max(height, block_height(frame.blocks[i], block_width(frame)));
  return height;
}

double frame_height(const Frame& frame) {
  double height = kTitle;
  for (size_t first = 0; first < frame.blocks.size(); first += columns_of(frame))
    height += row_height(frame, first) + kPad;
  return height;
}

// As many letters as fit: about 0.6 of the size each.
std::string fitting(const std::string& text, double width, double size) {
  const auto most = static_cast<size_t>(std::max(4.0, width / (size * 0.6)));
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

void draw_card(Svg& svg, const Card& card, const SvgBox& box) {
  const std::string all = card.title + ", " + card.detail + (card.tooltip.empty() ? "" : ", " + card.tooltip);
  svg.rectangle(box, card.fill, all);
  svg.text(box.x + 8, box.y + 18, fitting(card.title, box.width - 12, 13), 13);
  svg.text(box.x + 8, box.y + 34, fitting(card.detail, box.width - 12, 11), 11, "start", "#555555");
}

void draw_cells(Svg& svg, const Block& block, const SvgBox& box, double y) {
  const size_t per_row = cells_per_row(box.width);
  for (size_t i = 0; i < block.processors.size(); ++i) {
    const bool usable = std::ranges::binary_search(block.usable, block.processors[i]);
    const SvgBox cell{box.x + kPad + static_cast<double>(i % per_row) * kCell,
                      y + static_cast<double>(i / per_row) * kCell, kCell - 3, kCell - 3};
    svg.rectangle(cell, usable ? kUsable : kNotUsable,
                  "processor " + std::to_string(block.processors[i]) + (usable ? "" : ", not usable here"));
  }
}

void draw_block(Svg& svg, const Block& block, const SvgBox& box) {
  svg.frame(box);
  double y = box.y + kPad;
  if (!block.title.empty()) {
    svg.text(box.x + kPad, box.y + 20, fitting(block.title, box.width - 2 * kPad, 13), 13);
    y = box.y + 30;
  }
  if (!block.detail.empty()) {
    svg.text(box.x + kPad, box.y + 38, fitting(block.detail, box.width - 2 * kPad, 11), 11, "start", "#555555");
    y = box.y + 48;
  }
  if (cells_height(block, box.width) > 0) draw_cells(svg, block, box, y);
  y += cells_height(block, box.width);
  const size_t per_row = cards_per_row(box.width);
  const double width = (box.width - kPad) / static_cast<double>(per_row) - kPad;
  for (size_t i = 0; i < block.cards.size(); ++i) {
    draw_card(svg, block.cards[i],
              {box.x + kPad + static_cast<double>(i % per_row) * (width + kPad),
               y + static_cast<double>(i / per_row) * kCardHeight, width, kCardHeight - 8});
  }
}

void draw_frame(Svg& svg, const Frame& frame, double y) {
  svg.rectangle({kMargin, y, kWidth - 2 * kMargin, frame_height(frame)}, "#f8f8f8");
  svg.frame({kMargin, y, kWidth - 2 * kMargin, frame_height(frame)});
  svg.text(kMargin + kPad, y + 18, fitting(frame.title, kWidth - 2 * (kMargin + kPad), 14), 14);
  const double width = block_width(frame);
  double top = y + kTitle;
  for (size_t first = 0; first < frame.blocks.size(); first += columns_of(frame)) {
    const double height = row_height(frame, first);
    const size_t end = std::min(first + columns_of(frame), frame.blocks.size());
    for (size_t i = first; i < end; ++i)
      draw_block(svg, frame.blocks[i],
                 {kMargin + kPad + static_cast<double>(i - first) * (width + kPad), top, width, height});
    top += height + kPad;
  }
}

// ---- what is drawn

Block block_of(const Machine& machine, const MachineNode& node) {
  Block block;
  block.title = "node " + std::to_string(node.number) + ", " + memory_words(node.memory_bytes);
  block.detail = "no processors";
  if (!node.processors.empty())
    block.detail = "processors " + processors_text(node.processors) + ", " + usable_words(node.usable, node.processors);
  block.processors = node.processors;
  block.usable = node.usable;
  for (const MachineInterface& one : machine.interfaces) {
    if (one.interface.facts.numa_node == node.number) block.cards.push_back(card_of(one));
  }
  return block;
}

std::vector<Block> blocks_of(const Machine& machine, int package) {
  std::vector<Block> blocks;
  for (const MachineNode& node : machine.nodes) {
    if (node.package == package) blocks.push_back(block_of(machine, node));
  }
  return blocks;
}

Frame frame_of(const Machine& machine, const MachinePackage& package) {
  Frame frame{package.number < 0 ? "package unknown" : "package " + std::to_string(package.number), {}};
  if (package.number >= 0) frame.blocks = blocks_of(machine, package.number);
  // Its processors belong to a node that it shares with others.
  if (frame.blocks.empty())
    frame.blocks.push_back({"processors " + processors_text(package.processors),
                            usable_words(package.usable, package.processors),
                            package.processors,
                            package.usable,
                            {}});
  return frame;
}

Frame interfaces_apart(const Machine& machine) {
  Block block;
  for (const MachineInterface& one : machine.interfaces) {
    const int node = one.interface.facts.numa_node;
    if (std::ranges::find(machine.nodes, node, &MachineNode::number) == machine.nodes.end())
      block.cards.push_back(card_of(one));
  }
  if (block.cards.empty()) return {};
  return {"interfaces at no known node", {block}};
}

Frame dimensions_frame(const TopoView& view) {
  Block block;
  for (size_t d = 0; d < view.topology->dimensions.size(); ++d) {
    const Dimension& dimension = view.topology->dimensions[d];
    Card card{"dimension " + std::to_string(d + 1) + ": " + std::to_string(dimension.size) + " ranks", "", "", kNoRail};
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

std::vector<Frame> frames_of(const TopoView& view) {
  std::vector<Frame> frames;
  for (const MachinePackage& package : view.machine.packages) frames.push_back(frame_of(view.machine, package));
  frames.push_back({"nodes of no single package", blocks_of(view.machine, -1)});
  frames.push_back(interfaces_apart(view.machine));
  if (view.topology) frames.push_back(dimensions_frame(view));
  std::erase_if(frames, [](const Frame& frame) { return frame.blocks.empty(); });
  return frames;
}

void draw_legend(Svg& svg, double y) {
  const std::vector<std::pair<const char*, const char*>> entries = {{kUsable, "processor that may be used here"},
                                                                    {kNotUsable, "other processor"},
                                                                    {kRail, "rail"},
                                                                    {kNoRail, "no rail"}};
  double x = kMargin;
  for (const auto& [fill, text] : entries) {
    svg.rectangle({x, y, 12, 12}, fill);
    svg.text(x + 18, y + 11, text);
    x += 40 + 7.2 * static_cast<double>(std::string_view(text).size());
  }
}

}  // namespace

std::string topo_svg(const TopoView& view) {
  static constexpr double kTop = 84;  // space for title and legend
  const std::vector<Frame> frames = frames_of(view);
  double height = kTop;
  for (const Frame& frame : frames) height += frame_height(frame) + kPad;
  Svg svg(kWidth, height + kPad);
  svg.text(kMargin, 30, "host " + view.machine.hostname, 18);
  svg.text(kMargin, 50, summary_text(view.machine) + ", read from " + view.machine.source, 12, "start", "#555555");
  draw_legend(svg, 62);
  double y = kTop;
  for (const Frame& frame : frames) {
    draw_frame(svg, frame, y);
    y += frame_height(frame) + kPad;
  }
  return std::move(svg).finish();
}

}  // namespace trestle
