#include "cli/train/scale.h"

#include <algorithm>

#include "base/text/value_text.h"
#include "cli/option_values.h"

namespace trestle {
namespace {

// The point of one step. wfbp_s: the time of wfbp's step.
ScalePoint point_of(const PlannedStep& step, double wfbp_s, double compute_s, uint32_t workers) {
  ScalePoint point;
  point.iteration_s = step.time.iteration_s;
  point.messages = static_cast<uint32_t>(step.time.messages.size());
  if (point.iteration_s <= 0) return {0, 0, 1, point.messages};
  point.speedup = workers * compute_s / point.iteration_s;
  point.over_wfbp = wfbp_s / point.iteration_s;
  return point;
}

}  // namespace

Result<ScaleRange> parse_scale(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return invalid_argument("--scale: \"" + text + "\" is not a range like 4..2048");
  ScaleRange range;
  range.least = TRY(count_value("--scale", text.substr(0, dots), 1, kMostWorkers));
  range.most = TRY(count_value("--scale", text.substr(dots + 2), 1, kMostWorkers));
  if (range.least > range.most) return invalid_argument("--scale: " + text + " ends below its beginning");
  return range;
}

std::vector<uint32_t> workers_of(const ScaleRange& range) {
  std::vector<uint32_t> workers;
  for (uint64_t count = range.least; count < range.most; count *= 2) workers.push_back(static_cast<uint32_t>(count));
  workers.push_back(range.most);
  return workers;
}

ScaleReport scale_training(const ScaleRequest& request) {
  ScaleReport report;
  report.workload = request.name;
  report.compute_s = request.workload.forward_s() + request.workload.backward_s();
  report.algorithm = request.network.algorithm;
  report.workers = workers_of(request.range);
  for (const ChosenPolicy& policy : request.policies) report.curves.push_back({policy.text, {}});
  const ChosenPolicy wfbp = parse_gradient_policy("wfbp").value();
  for (const uint32_t workers : report.workers) {
    NetworkModel model = request.network.model;
    model.workers = workers;
    GradientLink link = network_link(model, request.network.algorithm);
    link.copy_per_byte_s = request.copy_per_byte_s;
    const double wfbp_s = plan_step(wfbp, request.workload, link).value().time.iteration_s;
    for (size_t i = 0; i < request.policies.size(); ++i) {
      const Result<PlannedStep> step =
          plan_step(request.policies[i],
                    {request.workload, link, {}, request.liberties, request.link_ratios, request.loss, model});
      std::optional<ScalePoint>& point = report.curves[i].points.emplace_back();
      if (step.ok()) point = point_of(step.value(), wfbp_s, report.compute_s, workers);
    }
  }
  return report;
}

}  // namespace trestle
