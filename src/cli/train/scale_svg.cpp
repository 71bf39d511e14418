#include <algorithm>
#include <array>
#include <cmath>

#include "cli/svg_writer.h"
#include "cli/text_line.h"
#include "cli/train/scale.h"

namespace trestle {
namespace {

constexpr double kScaleWidth = 1280;
constexpr double kScalePlotWidth = 440;
constexpr double kScalePlotHeight = 420;
constexpr double kScaleTop = 84;

// The colours of Okabe and Ito, which people without full colour vision can tell apart; then darker ones.
constexpr std::array kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                "#222222", "#8a8a00", "#7a3b00", "#004d3a", "#6a3d9a", "#999999"};

const char* color_of(size_t curve) {
  return kColors[curve % kColors.size()];
}

// A logarithmic axis: value -> 0 .. 1.
struct Axis {
  double least = 1;
  double most = 1;
  double at(double value) const { return most > least ? std::log(value / least) / std::log(most / least) : 0.5; }
};

// Of all values above 0 in all curves.
Axis axis_of(const ScaleReport& report, double ScalePoint::*value) {
  Axis axis{1e300, 0};
  for (const ScaleCurve& curve : report.curves) {
    for (const std::optional<ScalePoint>& point : curve.points) {
      if (!point || (*point).*value <= 0) continue;
      axis.least = std::min(axis.least, (*point).*value);
      axis.most = std::max(axis.most, (*point).*value);
    }
  }
  return axis.most > 0 ? axis : Axis{};
}

class Diagram {
 public:
  Diagram(Svg& svg, const ScaleReport& report, double x)
      : svg_(svg),
        report_(report),
        box_{x, kScaleTop, kScalePlotWidth, kScalePlotHeight},
        workers_{static_cast<double>(report.workers.front()), static_cast<double>(report.workers.back())} {}

  template <class Text>
  void draw(const char* title, double ScalePoint::*value, Text text) {
    const Axis values = axis_of(report_, value);
    svg_.text(box_.x, box_.y - 10, title, 13);
    svg_.frame(box_);
    for (const uint32_t count : report_.workers) {
      svg_.line(x_of(count), box_.y + box_.height, x_of(count), box_.y + box_.height + 5, "#444444");
      svg_.text(x_of(count), box_.y + box_.height + 18, std::to_string(count), 11, "middle");
    }
    for (int mark = 0; mark <= 4; ++mark) {
      const double at = values.least * std::pow(values.most / values.least, mark / 4.0);
      svg_.line(box_.x - 5, y_of(values, at), box_.x, y_of(values, at), "#444444");
      svg_.text(box_.x - 8, y_of(values, at) + 4, text(at), 11, "end");
    }
    for (size_t c = 0; c < report_.curves.size(); ++c) curve(c, value, values);
  }

 private:
  double x_of(uint32_t count) const { return box_.x + 10 + (box_.width - 20) * workers_.at(count); }
  double y_of(const Axis& values, double value) const {
    return box_.y + box_.height - 10 - (box_.height - 20) * values.at(value);
  }

  void curve(size_t c, double ScalePoint::*value, const Axis& values) {
    const ScaleCurve& curve = report_.curves[c];
    bool joined = false;
    double x_before = 0;
    double y_before = 0;
    for (size_t w = 0; w < report_.workers.size(); ++w) {
      const std::optional<ScalePoint>& point = curve.points[w];
      const bool shown = point && (*point).*value > 0;
      if (shown) {
        const double x = x_of(report_.workers[w]);
        const double y = y_of(values, (*point).*value);
        if (joined) svg_.line(x_before, y_before, x, y, color_of(c));
        svg_.rectangle({x - 2.5, y - 2.5, 5, 5}, color_of(c),
                       curve.policy + line(", %u workers: %.3f ms, speed-up %.2f", report_.workers[w],
                                           1e3 * point->iteration_s, point->speedup));
        x_before = x;
        y_before = y;
      }
      joined = shown;
    }
  }

  Svg& svg_;
  const ScaleReport& report_;
  SvgBox box_;
  Axis workers_;
};

}  // namespace

std::string scale_svg(const ScaleReport& report) {
  const double legend = 20 * static_cast<double>(report.curves.size());
  Svg svg(kScaleWidth, kScaleTop + std::max(kScalePlotHeight, legend) + 60);
  svg.text(70, 28,
           report.workload +
               line(": compute %.3f ms per step, all-reduce %s", 1e3 * report.compute_s, to_string(report.algorithm)),
           16);
  Diagram(svg, report, 70).draw("time per step, over workers", &ScalePoint::iteration_s, [](double s) {
    return time_text(1e9 * s);
  });
  Diagram(svg, report, 70 + kScalePlotWidth + 90)
      .draw("speed-up over one worker, over workers", &ScalePoint::speedup,
            [](double x) { return line(x < 100 ? "%.3g" : "%.0f", x); });
  const double x = 70 + 2 * kScalePlotWidth + 114;
  for (size_t c = 0; c < report.curves.size(); ++c) {
    const double y = kScaleTop + 20 * static_cast<double>(c);
    svg.rectangle({x, y, 12, 12}, color_of(c));
    svg.text(x + 18, y + 11, report.curves[c].policy);
  }
  return std::move(svg).finish();
}

}  // namespace trestle
