#include "cli/train/train.h"

#include <utility>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "cli/option_values.h"
#include "cli/train/lanes_svg.h"
#include "cli/train/presets/presets.h"
#include "cli/train/scale.h"
#include "cli/train/train_loss.h"
#include "cli/train/train_text.h"
#include "cli/train/workload_file.h"
#include "cli/write_file.h"
#include "gradient/layers/layer_workload.h"
#include "gradient/networks.h"

namespace trestle {
namespace {

bool is_built_in(const std::string& name) {
  for (const std::string_view network : network_names()) {
    if (network == name) return true;
  }
  for (const NamedComputeTime& each : compute_times()) {
    if (each.name == name) return true;
  }
  return false;
}

Result<GradientWorkload> with_compute(const TrainOptions& options) {
  const RealPair compute = TRY(real_pair("--compute", options.compute, "forward,backward"));
  const Result<Network> network = find_network(options.workload);
  if (!network.ok()) return invalid_argument("--compute: " + network.error().message);
  return workload_of(network.value(), {compute.first, compute.second});
}

Result<GradientWorkload> workload_of(const TrainOptions& options) {
  if (options.workload.empty())
    return invalid_argument("--workload: name a network or a file; --list shows the networks");
  if (!options.compute.empty()) return with_compute(options);
  if (is_layer_network(options.workload)) return layer_workload(options.workload);
  if (!is_built_in(options.workload)) {
    const Result<GradientWorkload> read = read_workload_file(options.workload);
    if (read.ok()) return read;
    return invalid_argument(read.error().message + " (and it is no built-in workload: --list shows these)");
  }
  const Result<GradientWorkload> built_in = built_in_workload(options.workload);
  if (!built_in.ok()) return invalid_argument("--workload: " + built_in.error().message + " with --compute");
  return built_in;
}

Result<uint32_t> liberties_of(const std::string& text) {
  uint32_t liberties = kLibertyNone;
  for (const std::string& name : split(text, ',')) {
    if (name != "stale" && name != "compression")
      return invalid_argument("--allow: " + unknown_name(name, "a liberty", {"stale", "compression"}).message);
    liberties |= name == "stale" ? kLibertyStale : kLibertyCompress;
  }
  return liberties;
}

Result<std::vector<ChosenPolicy>> named_policies(const std::string& text) {
  std::vector<ChosenPolicy> chosen;
  for (const std::string& name : split(text, ',')) {
    const Result<ChosenPolicy> policy = parse_gradient_policy(name);
    if (!policy.ok()) return invalid_argument("--policy: " + policy.error().message);
    chosen.push_back(policy.value());
  }
  if (chosen.empty()) return invalid_argument("--policy: names no policy");
  return chosen;
}

Result<std::vector<ChosenPolicy>> policies_of(const std::string& text, uint32_t liberties) {
  if (text == "all") return allowed_policies(liberties);
  return named_policies(text);
}

Result<GradientWorkload> tensors_of(const TrainOptions& options) {
  const GradientWorkload workload = TRY(workload_of(options));
  return options.compact ? compact(workload) : workload;
}

StepPlanRequest request_of(const TrainReport& report) {
  const TrainLink& link = report.link;
  return {report.tensors, link.link, {}, report.liberties, link.ratios, report.loss, link.network};
}

// The picture of a report.
Result<std::string> lanes_of(const TrainReport& report) {
  std::vector<StepLanes> lanes;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    lanes.push_back(TRY(step_lanes(report.steps[i], request_of(report))));
    if (report.asked[i] != report.steps[i].policy) lanes.back().policy = report.asked[i] + ", " + lanes.back().policy;
  }
  return lanes_svg("A training step of " + report.workload, lanes);
}

Result<std::string> scaled(const TrainOptions& options) {
  const ScaleRange range = TRY(parse_scale(options.scale));
  if (options.network.empty()) return invalid_argument("--scale: needs --network, whose number of workers it replaces");
  if (!options.cost.empty() || !options.topo.empty()) return invalid_argument("--scale: goes with --network alone");
  const GradientWorkload workload = TRY(tensors_of(options));
  const uint32_t liberties = TRY(liberties_of(options.allow));
  auto network = TRY(train_network(options.network));
  auto policies = TRY(policies_of(options.policies, liberties));
  auto ratios = TRY(train_link_ratios(options.links));
  auto loss = TRY(train_loss(options));
  const double copy_per_byte_s = TRY(train_copy(options.copy));
  const ScaleReport report = scale_training({options.workload, workload, std::move(network), range, std::move(policies),
                                             liberties, std::move(ratios), std::move(loss), copy_per_byte_s});
  if (!options.plot.empty()) TRY(write_file(options.plot, scale_svg(report)));
  return options.json ? scale_json(report) : scale_text(report);
}

// Whether an option is given that a preset decides itself.
bool describes_a_step(const TrainOptions& o) {
  for (const std::string* given : {&o.workload, &o.compute, &o.cost, &o.cost_half, &o.copy, &o.network, &o.topo,
                                   &o.links, &o.allow, &o.loss, &o.loss_epsilon, &o.loss_merged, &o.scale}) {
    if (!given->empty()) return true;
  }
  return o.policies != "all" || o.compact;
}

Result<std::string> calculated(const TrainOptions& options) {
  const Preset& preset = *TRY(find_preset(options.preset));
  if (describes_a_step(options)) return invalid_argument("--preset: goes with --json and --plot alone");
  const PresetReport report = TRY(preset.run());
  if (!options.plot.empty() && report.svg.empty())
    return invalid_argument("--plot: " + options.preset + " has no picture");
  if (!options.plot.empty()) TRY(write_file(options.plot, report.svg));
  return options.json ? preset_json(preset, report) : preset_text(preset, report);
}

}  // namespace

double speedup(const TrainReport& report, size_t i) {
  const double iteration_s = report.steps[i].time.iteration_s;
  return iteration_s > 0 ? report.wfbp_s / iteration_s : 1;
}

Result<TrainReport> predict_training(const TrainOptions& options) {
  TrainReport report;
  report.workload = options.workload;
  report.tensors = TRY(tensors_of(options));
  report.link = TRY(train_link(options));
  report.liberties = TRY(liberties_of(options.allow));
  report.loss = TRY(train_loss(options));
  const bool all = options.policies == "all";
  const std::vector<ChosenPolicy> chosen = TRY(policies_of(options.policies, report.liberties));
  const GradientLink& link = report.link.link;
  const ChosenPolicy wfbp = parse_gradient_policy("wfbp").value();
  report.wfbp_s = TRY(plan_step(wfbp, report.tensors, link)).time.iteration_s;
  for (const ChosenPolicy& each : chosen) {
    Result<PlannedStep> step = plan_step(each, request_of(report));
    if (!step.ok() && !all) return invalid_argument("--policy: " + each.text + ": " + step.error().message);
    if (!step.ok()) {
      report.refused.push_back({each.text, step.error().message});
      continue;
    }
    report.asked.push_back(each.text);
    report.steps.push_back(std::move(step).value());
  }
  return report;
}

Result<std::string> train(const TrainOptions& options) {
  if (options.list) return train_list() + preset_list();
  if (!options.preset.empty()) return calculated(options);
  if (!options.scale.empty()) return scaled(options);
  const TrainReport report = TRY(predict_training(options));
  if (!options.plot.empty()) TRY(write_file(options.plot, TRY(lanes_of(report))));
  return options.json ? train_json(report) : train_text(report);
}

}  // namespace trestle
