#include "cli/svg_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/text_line.h"

namespace trestle {
namespace {

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '&':
        all += "&amp;";
        break;
      case '"':
        all += "&quot;";
        break;
      default:
        all += c;
    }
  }
  return all;
}

std::string box_attributes(const SvgBox& box) {
  return attribute("x", number(box.x)) + attribute("y", number(box.y)) + attribute("width", number(box.width)) +
         attribute("height", number(box.height));
}

// 1, 2 or 5 times a power of ten, chosen so that there are about `marks` marks.
double round_step(double whole, int marks) {
  const double rough = whole / marks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Svg::Svg(double width, double height) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\"" + attribute("width", number(width)) +
          attribute("height", number(height)) + attribute("viewBox", "0 0 " + number(width) + " " + number(height)) +
          " font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n";
  rectangle({0, 0, width, height}, "#ffffff");
}

void Svg::rectangle(const SvgBox& box, std::string_view fill, std::string_view tooltip) {
  text_ += "<rect" + box_attributes(box) + attribute("fill", fill);
  text_ += tooltip.empty() ? "/>\n" : "><title>" + escaped(tooltip) + "</title></rect>\n";
}

void Svg::frame(const SvgBox& box) {
  text_ += "<rect" + box_attributes(box) + " fill=\"none\" stroke=\"#999999\" stroke-width=\"1\"/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, bool dashed) {
  text_ += "<line" + attribute("x1", number(x1)) + attribute("y1", number(y1)) + attribute("x2", number(x2)) +
           attribute("y2", number(y2)) + attribute("stroke", stroke) +
           (dashed ? " stroke-dasharray=\"5,4\"/>\n" : "/>\n");
}

void Svg::text(double x, double y, std::string_view what, double size, std::string_view anchor, std::string_view fill) {
  text_ += "<text" + attribute("x", number(x)) + attribute("y", number(y)) + attribute("font-size", number(size)) +
           attribute("text-anchor", anchor) + attribute("fill", fill) + ">" + escaped(what) + "</text>\n";
}

void Svg::area(const SvgBox& box, const std::vector<double>& shares, std::string_view fill) {
  const double step = box.width / static_cast<double>(std::max<size_t>(shares.size(), 1));
  std::string points = number(box.x) + "," + number(box.y + box.height);
  for (size_t i = 0; i < shares.size(); ++i) {
    const std::string y = number(box.y + box.height * (1 - std::clamp(shares[i], 0.0, 1.0)));
    points += " " + number(box.x + static_cast<double>(i) * step) + "," + y + " " +
              number(box.x + static_cast<double>(i + 1) * step) + "," + y;
  }
  points += " " + number(box.x + box.width) + "," + number(box.y + box.height);
  text_ += "<polygon" + attribute("points", points) + attribute("fill", fill) + "/>\n";
}

void Svg::time_axis(const SvgBox& box, double time_ns, int marks) {
  const double bottom = box.y + box.height;
  line(box.x, bottom, box.x + box.width, bottom, "#444444");
  if (time_ns <= 0) return;
  const double step_ns = round_step(time_ns, marks);
  for (int mark = 0; mark * step_ns <= time_ns * (1 + 1e-9); ++mark) {
    const double at_ns = mark * step_ns;
    const double x = box.x + box.width * at_ns / time_ns;
    line(x, bottom, x, bottom + 5, "#444444");
    text(x, bottom + 17, at_ns == 0 ? "0" : time_text(at_ns), 11, "middle");
  }
}

std::string Svg::finish() && {
  return std::move(text_) + "</svg>\n";
}

std::string scale_color(double at, bool light) {
  // Points of the colour map viridis (Smith and van der Walt, public domain).
  static constexpr std::array<std::array<double, 3>, 6> kPoints = {
      {{68, 1, 84}, {65, 68, 135}, {42, 120, 142}, {34, 168, 132}, {122, 209, 81}, {253, 231, 37}}};
  const double place = std::clamp(at, 0.0, 1.0) * (kPoints.size() - 1);
  const auto low = std::min(static_cast<size_t>(place), kPoints.size() - 2);
  const double share = place - static_cast<double>(low);
  std::array<int, 3> color{};
  for (size_t i = 0; i < 3; ++i) {
    double value = kPoints[low][i] * (1 - share) + kPoints[low + 1][i] * share;
    if (light) value = 255 - (255 - value) * 0.55;
    color[i] = static_cast<int>(std::lround(value));
  }
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(color[0]), static_cast<unsigned>(color[1]),
                static_cast<unsigned>(color[2]));
  return text;
}

}  // namespace trestle
