#include <algorithm>

#include "cli/json_writer.h"
#include "cli/text_line.h"
#include "cli/train/scale.h"

namespace trestle {
namespace {

// One row per number of workers, one column per policy.
std::string table(const ScaleReport& report, const char* title, double ScalePoint::*value, double factor,
                  const char* format) {
  std::string text = line("\n%-10s", title);
  for (const ScaleCurve& curve : report.curves) {
    text += line(" %*s", static_cast<int>(std::max<size_t>(curve.policy.size(), 10)), curve.policy.c_str());
  }
  text += '\n';
  for (size_t w = 0; w < report.workers.size(); ++w) {
    text += line("%-10u", report.workers[w]);
    for (const ScaleCurve& curve : report.curves) {
      const std::string cell = curve.points[w] ? line(format, factor * (*curve.points[w]).*value) : "-";
      text += line(" %*s", static_cast<int>(std::max<size_t>(curve.policy.size(), 10)), cell.c_str());
    }
    text += '\n';
  }
  return text;
}

std::string point_json(const std::optional<ScalePoint>& point) {
  if (!point) return "null";
  return json::object({{"iteration_s", json::exact(point->iteration_s)},
                       {"speedup", json::exact(point->speedup)},
                       {"over_wfbp", json::exact(point->over_wfbp)},
                       {"messages", std::to_string(point->messages)}});
}

}  // namespace

std::string scale_text(const ScaleReport& report) {
  std::string text = line("%s: compute %.3f ms per step, all-reduce %s\n", report.workload.c_str(),
                          1e3 * report.compute_s, to_string(report.algorithm));
  text += "\ntime per step, ms" + table(report, "workers", &ScalePoint::iteration_s, 1e3, "%.3f");
  text += "\nspeed-up over one worker" + table(report, "workers", &ScalePoint::speedup, 1, "%.2f");
  return text;
}

std::string scale_json(const ScaleReport& report) {
  const auto curve_json = [](const ScaleCurve& curve) {
    return json::object({{"policy", json::text(curve.policy)}, {"points", json::array(curve.points, point_json)}});
  };
  return json::object({{"workload", json::text(report.workload)},
                       {"compute_s", json::exact(report.compute_s)},
                       {"algorithm", json::text(to_string(report.algorithm))},
                       {"workers", json::array(report.workers, [](uint32_t count) { return std::to_string(count); })},
                       {"curves", json::array(report.curves, curve_json)}}) +
         "\n";
}

}  // namespace trestle
