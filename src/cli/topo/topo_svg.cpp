// Packages are frames below each other. A package's nodes stand side by side; a node has a square per processor, and
// its GPUs and interfaces below them.
#include <algorithm>
#include <string_view>

#include "cli/svg_writer.h"
#include "cli/topo/topo_frames.h"

namespace trestle {
namespace {

constexpr double kTopoWidth = 1200;
constexpr double kMargin = 24;
constexpr double kPad = 12;
constexpr double kTitle = 26;       // height of a frame's title
constexpr double kCell = 14;        // of a processor, with its gap
constexpr double kCardHeight = 50;  // of a card, with its gap
constexpr size_t kMostColumns = 4;
constexpr size_t kMostCells = 512;  // a node with more processors has only its text

constexpr const char* kUsable = "#2a788e";
constexpr const char* kNotUsable = "#d9d9d9";

size_t columns_of(const TopoFrame& frame) {
  return std::clamp<size_t>(frame.blocks.size(), 1, kMostColumns);
}

double block_width(const TopoFrame& frame) {
  const auto columns = static_cast<double>(columns_of(frame));
  return (kTopoWidth - 2 * kMargin - (columns + 1) * kPad) / columns;
}

size_t cells_per_row(double width) {
  return std::max<size_t>(1, static_cast<size_t>((width - 2 * kPad) / kCell));
}

double cells_height(const TopoBlock& block, double width) {
  if (block.processors.empty() || block.processors.size() > kMostCells) return 0;
  const size_t rows = (block.processors.size() - 1) / cells_per_row(width) + 1;
  return static_cast<double>(rows) * kCell + 6;
}

// Narrow blocks have their cards below each other, wide ones beside each other.
size_t cards_per_row(double width) {
  return std::max<size_t>(1, static_cast<size_t>(width / 270));
}

double cards_height(const TopoBlock& block, double width) {
  const size_t per_row = cards_per_row(width);
  return static_cast<double>((block.cards.size() + per_row - 1) / per_row) * kCardHeight;
}

double block_height(const TopoBlock& block, double width) {
  const double texts = block.title.empty() ? kPad : block.detail.empty() ? 30 : 48;
  return texts + cells_height(block, width) + cards_height(block, width) + 4;
}

// The height of the highest block in a row.
double row_height(const TopoFrame& frame, size_t first) {
  double height = 0;
  const size_t end = std::min(first + columns_of(frame), frame.blocks.size());
  for (size_t i = first; i < end; ++i) height = std::max(height, block_height(frame.blocks[i], block_width(frame)));
  return height;
}

double frame_height(const TopoFrame& frame) {
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

void draw_card(Svg& svg, const TopoCard& card, const SvgBox& box) {
  const std::string all = card.title + ", " + card.detail + (card.tooltip.empty() ? "" : ", " + card.tooltip);
  svg.rectangle(box, card.fill, all);
  svg.text(box.x + 8, box.y + 18, fitting(card.title, box.width - 12, 13), 13);
  svg.text(box.x + 8, box.y + 34, fitting(card.detail, box.width - 12, 11), 11, "start", "#555555");
}

void draw_cells(Svg& svg, const TopoBlock& block, const SvgBox& box, double y) {
  const size_t per_row = cells_per_row(box.width);
  for (size_t i = 0; i < block.processors.size(); ++i) {
    const bool usable = std::ranges::binary_search(block.usable, block.processors[i]);
    const SvgBox cell{box.x + kPad + static_cast<double>(i % per_row) * kCell,
                      y + static_cast<double>(i / per_row) * kCell, kCell - 3, kCell - 3};
    svg.rectangle(cell, usable ? kUsable : kNotUsable,
                  "processor " + std::to_string(block.processors[i]) + (usable ? "" : ", not usable here"));
  }
}

void draw_block(Svg& svg, const TopoBlock& block, const SvgBox& box) {
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

void draw_frame(Svg& svg, const TopoFrame& frame, double y) {
  svg.rectangle({kMargin, y, kTopoWidth - 2 * kMargin, frame_height(frame)}, "#f8f8f8");
  svg.frame({kMargin, y, kTopoWidth - 2 * kMargin, frame_height(frame)});
  svg.text(kMargin + kPad, y + 18, fitting(frame.title, kTopoWidth - 2 * (kMargin + kPad), 14), 14);
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

void draw_legend(Svg& svg, double y, bool has_gpus) {
  std::vector<std::pair<const char*, const char*>> entries = {{kUsable, "processor that may be used here"},
                                                              {kNotUsable, "other processor"},
                                                              {kRail, "rail"},
                                                              {kNoRail, "no rail"}};
  if (has_gpus) entries.emplace_back(kGpu, "GPU");
  double x = kMargin;
  for (const auto& [fill, text] : entries) {
    svg.rectangle({x, y, 12, 12}, fill);
    svg.text(x + 18, y + 11, text);
    x += 40 + 7.2 * static_cast<double>(std::string_view(text).size());
  }
}

}  // namespace

std::string topo_svg(const TopoView& view) {
  static constexpr double kTopoTop = 84;  // space for title and legend
  const std::vector<TopoFrame> frames = frames_of(view);
  double height = kTopoTop;
  for (const TopoFrame& frame : frames) height += frame_height(frame) + kPad;
  Svg svg(kTopoWidth, height + kPad);
  svg.text(kMargin, 30, "host " + view.machine.hostname, 18);
  svg.text(kMargin, 50, summary_text(view.machine) + ", read from " + view.machine.source, 12, "start", "#555555");
  draw_legend(svg, 62, !view.machine.gpus.list.empty());
  double y = kTopoTop;
  for (const TopoFrame& frame : frames) {
    draw_frame(svg, frame, y);
    y += frame_height(frame) + kPad;
  }
  return std::move(svg).finish();
}

}  // namespace trestle
