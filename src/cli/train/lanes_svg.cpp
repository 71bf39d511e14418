#include "cli/train/lanes_svg.h"

#include <algorithm>

#include "cli/svg_writer.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

constexpr double kLanesWidth = 1280;
constexpr double kLanesPlotX = 96;
constexpr double kLanesPlotWidth = kLanesWidth - kLanesPlotX - 40;
constexpr double kLanesTop = 84;  // space for title and legend
constexpr double kLanesLaneHeight = 24;
constexpr double kLanePitch = 28;
constexpr double kTitleHeight = 24;  // of one policy
constexpr double kPolicyGap = 14;

struct Ink {
  const char* fill;
  const char* letters;
};

Ink ink_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kForward:
      return {"#a8cfe3", "#111111"};
    case SpanKind::kBackward:
      return {"#3b6ea5", "#ffffff"};
    case SpanKind::kAllReduce:
      return {"#e3a73a", "#111111"};
    case SpanKind::kReduceScatter:
      return {"#b5552b", "#ffffff"};
    case SpanKind::kAllGather:
      return {"#86b25e", "#111111"};
  }
  return {"#999999", "#111111"};
}

double height_of(const StepLanes& step) {
  return kTitleHeight + kLanePitch * static_cast<double>(step.lanes.size()) + kPolicyGap;
}

void draw_legend(Svg& svg) {
  double x = kLanesPlotX;
  for (const SpanKind kind : {SpanKind::kForward, SpanKind::kBackward, SpanKind::kAllReduce, SpanKind::kReduceScatter,
                              SpanKind::kAllGather}) {
    svg.rectangle({x, 48, 16, 16}, ink_of(kind).fill);
    svg.text(x + 22, 60, to_string(kind));
    x += 140;
  }
  svg.text(x, 60, "numbers: tensors in forward order; of delayed updates, on compute: steps", 12, "start", "#444444");
}

void draw_span(Svg& svg, const LaneSpan& span, const SvgBox& lane, double per_s) {
  const SvgBox box{lane.x + span.start_s * per_s, lane.y, std::max(0.3, (span.end_s - span.start_s) * per_s - 0.5),
                   lane.height};
  const Ink ink = ink_of(span.kind);
  svg.rectangle(box, ink.fill,
                span.details + ": " + time_text(1e9 * span.start_s) + " to " + time_text(1e9 * span.end_s));
  if (box.width < 6.5 * static_cast<double>(span.label.size()) + 4) return;
  svg.text(box.x + box.width / 2, box.y + box.height / 2 + 4, span.label, 11, "middle", ink.letters);
}

void draw_step(Svg& svg, const StepLanes& step, double y, double per_s) {
  svg.text(kLanesPlotX, y + kTitleHeight - 8, step.policy + line(": %.3f ms per step", 1e3 * step.iteration_s), 13);
  y += kTitleHeight;
  for (const StepLane& lane : step.lanes) {
    const SvgBox box{kLanesPlotX, y, kLanesPlotWidth, kLanesLaneHeight};
    svg.text(kLanesPlotX - 8, y + kLanesLaneHeight / 2 + 4, lane.name, 12, "end");
    svg.rectangle({box.x, box.y, step.shown_s * per_s, box.height}, "#f0f0f0");
    for (const LaneSpan& span : lane.spans) draw_span(svg, span, box, per_s);
    y += kLanePitch;
  }
}

}  // namespace

std::string lanes_svg(const std::string& title, const std::vector<StepLanes>& steps) {
  double shown_s = 0;
  double height = kLanesTop;
  for (const StepLanes& step : steps) {
    shown_s = std::max(shown_s, step.shown_s);
    height += height_of(step);
  }
  Svg svg(kLanesWidth, height + 40);
  svg.text(kLanesPlotX, 28, title, 16);
  draw_legend(svg);
  const double per_s = shown_s > 0 ? kLanesPlotWidth / shown_s : 0;
  double y = kLanesTop;
  for (const StepLanes& step : steps) {
    draw_step(svg, step, y, per_s);
    y += height_of(step);
  }
  svg.time_axis({kLanesPlotX, kLanesTop, kLanesPlotWidth, y - kLanesTop}, 1e9 * shown_s, 10);
  return std::move(svg).finish();
}

}  // namespace trestle
