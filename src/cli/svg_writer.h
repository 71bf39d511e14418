// Writes the few SVG elements that the command's pictures need. One Svg belongs to one picture and one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trestle {

struct SvgBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class Svg {
 public:
  // Coordinates are pixels, from the upper left corner.
  Svg(double width, double height);

  // tooltip: viewers show it while the pointer is there; "": none.
  void rectangle(const SvgBox& box, std::string_view fill, std::string_view tooltip = "");
  void frame(const SvgBox& box);
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, bool dashed = false);
  // anchor: start, middle, end.
  void text(double x, double y, std::string_view what, double size = 12, std::string_view anchor = "start",
            std::string_view fill = "#222");
  // The area below `shares` (0 to 1) in a box.
  void area(const SvgBox& box, const std::vector<double>& shares, std::string_view fill);
  // An axis below a box with times from 0 to time_ns and about `marks` round marks.
  void time_axis(const SvgBox& box, double time_ns, int marks);

  std::string finish() &&;

 private:
  std::string text_;
};

// A colour of a scale from 0 to 1 whose order is visible without colour vision: dark blue, green, yellow. light: paler.
std::string scale_color(double at, bool light = false);

}  // namespace trestle
