#include <algorithm>

#include "base/text/json.h"
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

Json point_json(const std::optional<ScalePoint>& point) {
  if (!point) return nullptr;
  return Json::object({{"iteration_s", point->iteration_s},
                       {"speedup", point->speedup},
                       {"over_wfbp", point->over_wfbp},
                       {"messages", point->messages}});
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
    return Json::object({{"policy", curve.policy}, {"points", json_list(curve.points, point_json)}});
  };
  return json_text(Json::object({{"workload", report.workload},
                                 {"compute_s", report.compute_s},
                                 {"algorithm", to_string(report.algorithm)},
                                 {"workers", report.workers},
                                 {"curves", json_list(report.curves, curve_json)}})) +
         "\n";
}

}  // namespace trestle
