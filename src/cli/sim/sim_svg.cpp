#include "cli/sim/sim_svg.h"

#include <algorithm>
#include <cstdio>

#include "base/text/value_text.h"
#include "cli/svg_writer.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

constexpr double kSimWidth = 1280;
constexpr double kSimLeft = 24;
constexpr double kSimPlotWidth = kSimWidth - 2 * kSimLeft - 56;
constexpr double kSimPlotX = kSimLeft + 56;
constexpr double kSimTop = 96;  // space for title and legend
constexpr double kUtilizationHeight = 120;
constexpr uint32_t kSimBins = 400;

double color_at(const SimView& view, uint32_t chunk) {
  return view.chunks.size() < 2 ? 0 : static_cast<double>(chunk) / static_cast<double>(view.chunks.size() - 1);
}

// Yellow and pale colours need dark letters.
const char* ink_on(double color, bool light) {
  return light || color > 0.6 ? "#111111" : "#ffffff";
}

struct LaneLayout {
  std::vector<uint32_t> rows;
  double row_height = 0;
  SvgBox box;
};

LaneLayout layout_of(const SimLane& lane, double y) {
  LaneLayout layout;
  layout.rows = rows_of(lane);
  const uint32_t count = layout.rows.empty() ? 1 : *std::ranges::max_element(layout.rows) + 1;
  layout.row_height = count == 1 ? 44 : std::clamp(150.0 / count, 4.0, 26.0);
  layout.box = {kSimPlotX, y, kSimPlotWidth, layout.row_height * count};
  return layout;
}

void draw_phase(Svg& svg, const SimView& view, const SimPhaseView& phase, const LaneLayout& layout, uint32_t row) {
  const double per_ns = layout.box.width / view.time_ns;
  const SvgBox box{layout.box.x + phase.start_ns * per_ns, layout.box.y + layout.row_height * row,
                   std::max(0.3, (phase.end_ns - phase.start_ns) * per_ns - 0.4), layout.row_height - 1};
  const double color = color_at(view, phase.id.chunk);
  const bool light = phase.kind == PhaseKind::kAllGather;
  const std::string name = std::to_string(phase.id.chunk);
  svg.rectangle(box, scale_color(color, light),
                "chunk " + name + ", " + to_string(phase.kind) + ", " + time_text(phase.start_ns) + " to " +
                    time_text(phase.end_ns));
  if (box.height < 11 || box.width < 6.5 * static_cast<double>(name.size()) + 4) return;
  svg.text(box.x + box.width / 2, box.y + box.height / 2 + 4, name, 11, "middle", ink_on(color, light));
}

void draw_lane(Svg& svg, const SimView& view, const SimLane& lane, const LaneLayout& layout) {
  const double busy = view.time_ns > 0 ? 100 * lane.busy_ns / view.time_ns : 0;
  svg.text(layout.box.x, layout.box.y - 6, lane.name + line(" — busy %.1f %%", busy), 13);
  svg.rectangle(layout.box, "#f2f2f2");
  if (view.time_ns <= 0) return;
  for (size_t i = 0; i < lane.phases.size(); ++i) draw_phase(svg, view, lane.phases[i], layout, layout.rows[i]);
  svg.frame(layout.box);
}

void draw_legend(Svg& svg, const SimView& view) {
  const double y = 62;
  double x = kSimPlotX;
  svg.text(x, y + 11, "chunk 0", 12);
  x += 54;
  for (const bool light : {false, true}) {
    for (uint32_t i = 0; i < 32; ++i) {
      svg.rectangle({x + i * 5.0, y + (light ? 8.0 : 0.0), 5.2, 8}, scale_color(i / 31.0, light));
    }
  }
  x += 168;
  svg.text(x, y + 11, line("chunk %zu", view.chunks.empty() ? size_t{0} : view.chunks.size() - 1), 12);
  x += 90;
  svg.rectangle({x, y, 16, 16}, scale_color(0.3));
  svg.text(x + 22, y + 12, "reduce-scatter (full colour)", 12);
  x += 210;
  svg.rectangle({x, y, 16, 16}, scale_color(0.3, true));
  svg.text(x + 22, y + 12, "all-gather (pale)", 12);
  x += 146;
  svg.rectangle({x, y, 16, 16}, "#f2f2f2");
  svg.frame({x, y, 16, 16});
  svg.text(x + 22, y + 12, "nothing in flight", 12);
}

void draw_utilization(Svg& svg, const SimView& view, const SvgBox& box) {
  svg.text(box.x, box.y - 6, "utilisation of all links, weighted by bandwidth", 13);
  svg.rectangle(box, "#f2f2f2");
  svg.area(box, total_activity(view, kSimBins), "#5b8db8");
  for (const int percent : {0, 50, 100}) {
    const double y = box.y + box.height * (1 - percent / 100.0);
    svg.line(box.x - 5, y, box.x, y, "#444444");
    svg.text(box.x - 8, y + 4, std::to_string(percent) + " %", 11, "end");
  }
  const double mean_y = box.y + box.height * (1 - std::clamp(view.utilization, 0.0, 1.0));
  svg.line(box.x, mean_y, box.x + box.width, mean_y, "#b03030", true);
  svg.text(box.x + box.width, box.y - 6, line("- - -  mean %.1f %%", 100 * view.utilization), 12, "end", "#b03030");
  svg.frame(box);
}

}  // namespace

std::string sim_svg(const SimView& view) {
  std::vector<LaneLayout> layouts;
  double y = kSimTop + 22;
  for (const SimLane& lane : view.lanes) {
    layouts.push_back(layout_of(lane, y));
    y += layouts.back().box.height + 34;
  }
  const SvgBox utilization{kSimPlotX, y + 6, kSimPlotWidth, kUtilizationHeight};
  Svg svg(kSimWidth, utilization.y + utilization.height + 48);
  svg.text(kSimPlotX, 28,
           view.collective + " of " + bytes_text(static_cast<int64_t>(view.bytes)) + " per rank on " + view.sizes +
               " ranks: " + view.sched + (view.intra.empty() ? "" : " (" + view.intra + ")") +
               line(", %zu chunks, model ", view.chunks.size()) + view.model,
           16);
  svg.text(kSimPlotX, 48,
           "time " + time_text(view.time_ns) + line(", utilisation %.2f %%", 100 * view.utilization) + ", ideal " +
               time_text(view.ideal_time_ns) + ", fluid bound " + time_text(view.fluid_bound_ns),
           13, "start", "#444444");
  draw_legend(svg, view);
  for (size_t l = 0; l < layouts.size(); ++l) draw_lane(svg, view, view.lanes[l], layouts[l]);
  draw_utilization(svg, view, utilization);
  svg.time_axis(utilization, view.time_ns, 10);
  return std::move(svg).finish();
}

}  // namespace trestle
