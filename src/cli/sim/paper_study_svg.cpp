#include "cli/sim/paper_study_svg.h"

#include <algorithm>
#include <cstdio>

#include "cli/svg_writer.h"

namespace trestle {
namespace {

constexpr double kStudyLeft = 60;
constexpr double kPanelWidth = 290;
constexpr double kPanelGap = 26;
constexpr double kStudyLaneHeight = 34;
constexpr double kLaneGap = 6;
constexpr double kStudyTop = 70;
constexpr double kSystemGap = 74;
constexpr uint32_t kStudyBins = 120;

double panel_height(const StudyResult& system) {
  const double lanes = system.largest.empty() ? 0 : static_cast<double>(system.largest.front().lanes.size());
  return lanes * (kStudyLaneHeight + kLaneGap);
}

// All panels of a system have the same scale of time, so a shorter picture means a faster schedule.
void draw_panel(Svg& svg, const SimView& view, double longest_ns, double x, double y) {
  char title[128];
  std::snprintf(title, sizeof title, "%s: %.1f %%, %.1f us", view.sched.c_str(), 100 * view.utilization,
                view.time_ns / 1000);
  svg.text(x, y - 6, title, 12);
  const double width = kPanelWidth * view.time_ns / longest_ns;
  double lane_y = y;
  for (const SimLane& lane : view.lanes) {
    const SvgBox box{x, lane_y, width, kStudyLaneHeight};
    svg.rectangle(box, "#f2f2f2");
    svg.area(box, activity(lane, view.time_ns, kStudyBins), scale_color(0.15 + 0.2 * lane.dimension));
    svg.frame(box);
    lane_y += kStudyLaneHeight + kLaneGap;
  }
  svg.time_axis({x, y, kPanelWidth, lane_y - y - kLaneGap + 4}, longest_ns, 4);
}

}  // namespace

std::string study_svg(const PaperStudy& study) {
  double height = kStudyTop;
  for (const StudyResult& system : study.systems) height += panel_height(system) + kSystemGap;
  const double columns = static_cast<double>(study.variants.size());
  Svg svg(kStudyLeft + columns * (kPanelWidth + kPanelGap) + 20, height);
  svg.text(kStudyLeft, 28,
           std::string("activity of each dimension over time: ") + to_string(study.collective) + ", " +
               std::to_string(study.chunks) + " chunks",
           16);
  svg.text(kStudyLeft, 46, "a lane is full where the link is always busy; panels of a system share the scale of time",
           12, "start", "#444444");
  double y = kStudyTop + 34;
  for (const StudyResult& system : study.systems) {
    if (system.largest.empty()) continue;
    svg.text(kStudyLeft, y - 24, system.name + ", " + std::to_string(system.points.back().size_mib) + " MB", 14);
    double longest_ns = 0;
    for (const SimView& view : system.largest) longest_ns = std::max(longest_ns, view.time_ns);
    for (size_t d = 0; d < system.largest.front().lanes.size(); ++d) {
      const double lane_y = y + static_cast<double>(d) * (kStudyLaneHeight + kLaneGap) + kStudyLaneHeight / 2 + 4;
      svg.text(kStudyLeft - 8, lane_y, "dim " + std::to_string(system.largest.front().lanes[d].dimension + 1), 11,
               "end");
    }
    for (size_t v = 0; v < system.largest.size(); ++v) {
      draw_panel(svg, system.largest[v], longest_ns, kStudyLeft + static_cast<double>(v) * (kPanelWidth + kPanelGap),
                 y);
    }
    y += panel_height(system) + kSystemGap;
  }
  return std::move(svg).finish();
}

}  // namespace trestle
