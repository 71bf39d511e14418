#include "cli/train/train_text.h"

#include "base/text/json.h"
#include "cli/text_line.h"
#include "gradient/layers/layer_workload.h"
#include "gradient/networks.h"

namespace trestle {
namespace {

std::string cost_text(const char* name, const MessageCost& cost) {
  return line("  %-14s %12.3f us + %.6g ns per byte\n", name, 1e6 * cost.startup_s, 1e9 * cost.per_byte_s);
}

std::string fit_text(const TrainLink& link) {
  if (!link.fitted) return "";
  const TopologyCost& fitted = *link.fitted;
  if (fitted.workers == 1) return "  one rank exchanges nothing\n";
  const auto percent = [](const FittedCost& cost) { return 100 * cost.worst(); };
  return line(
      "  fitted to the library's model of %lld ranks at %zu sizes; farthest from it by %.0f, %.0f and %.0f %%\n",
      static_cast<long long>(fitted.workers), fitted.all_reduce.points.size(), percent(fitted.all_reduce),
      percent(fitted.reduce_scatter), percent(fitted.all_gather));
}

std::string links_text(const TrainLink& link) {
  std::string text;
  for (size_t i = 0; i < link.ratios.size(); ++i)
    text += line("  link %zu takes %g times as long (deft only)\n", i + 1, link.ratios[i]);
  return text;
}

Json fitted_json(const char* collective, const FittedCost& fitted) {
  const auto point_json = [&fitted](const CostPoint& point) {
    return Json::object(
        {{"bytes", point.bytes}, {"predicted_s", point.predicted_s}, {"fitted_s", fitted.cost.of(point.bytes)}});
  };
  return Json::object({{"collective", collective},
                       {"startup_s", fitted.cost.startup_s},
                       {"per_byte_s", fitted.cost.per_byte_s},
                       {"points", json_list(fitted.points, point_json)}});
}

Json fits_json(const TopologyCost& fitted) {
  return Json::array({fitted_json("allreduce", fitted.all_reduce), fitted_json("reducescatter", fitted.reduce_scatter),
                      fitted_json("allgather", fitted.all_gather)});
}

Json groups_json(const std::vector<TensorGroup>& groups) {
  return json_list(groups, [](const TensorGroup& group) { return Json::array({group.first, group.last}); });
}

// Delayed messages differ from step to step.
bool has_fixed_messages(const PlannedStep& step) {
  return step.plan.shape != StepShape::kDelayed;
}

Json step_json(const TrainReport& report, size_t i) {
  const PlannedStep& step = report.steps[i];
  Json members = {{"policy", report.asked[i]}};
  if (step.policy != report.asked[i]) members["chosen"] = step.policy;
  members["iteration_s"] = step.time.iteration_s;
  members["exposed_s"] = step.time.exposed_s;
  members["speedup_over_wfbp"] = speedup(report, i);
  members["messages"] = has_fixed_messages(step) ? Json(step.time.messages.size()) : nullptr;
  members["updates_per_iteration"] = step.updates_per_iteration;
  members["age"] = step.age;
  members["groups"] = groups_json(step.plan.groups);
  members["gather_groups"] = groups_json(step.plan.gather_groups);
  members["batches"] = step.batches;
  if (step.compressed) {
    members["ratio"] = step.compressed->ratio;
    members["collective"] = step.compressed->collective;
    members["selection_s"] = step.compressed->selection_s;
  }
  if (step.loss) {
    members["capacity"] = step.plan.capacity_permille / 1000.0;
    members["loss_ratio"] = step.loss->ratio;
    members["loss_accepted"] = step.loss->accepted;
  }
  return members;
}

}  // namespace

std::string train_text(const TrainReport& report) {
  const GradientWorkload& workload = report.tensors;
  std::string text =
      line("%s: %zu tensors, %.3f MB of gradients, forward %.3f ms, backward %.3f ms\n", report.workload.c_str(),
           workload.tensors.size(), 1e-6 * static_cast<double>(workload.bytes()), 1e3 * workload.forward_s(),
           1e3 * workload.backward_s());
  const GradientLink& link = report.link.link;
  text += cost_text("all-reduce", link.all_reduce) + cost_text("reduce-scatter", link.reduce_scatter) +
          cost_text("all-gather", link.all_gather);
  if (link.copy_per_byte_s > 0)
    text += line("  %-14s %12s %.6g ns per byte and copy\n", "copies", "", 1e9 * link.copy_per_byte_s);
  text += fit_text(report.link) + links_text(report.link);
  text += line("\n%-24s %14s %14s %10s %9s\n", "policy", "iteration, ms", "exposed, ms", "over wfbp", "messages");
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepTime& time = report.steps[i].time;
    text += line("%-24s %14.3f %14.3f %9.3fx %9s", report.asked[i].c_str(), 1e3 * time.iteration_s,
                 1e3 * time.exposed_s, speedup(report, i),
                 has_fixed_messages(report.steps[i]) ? std::to_string(time.messages.size()).c_str() : "-");
    if (report.steps[i].age != 0)
      text += line("  %.3f updates per iteration, gradients up to %u iterations old",
                   report.steps[i].updates_per_iteration, report.steps[i].age);
    if (const auto& compressed = report.steps[i].compressed)
      text += line("  %.3g of the elements by %s, %.3f ms to select them", compressed->ratio,
                   compressed->collective.c_str(), 1e3 * compressed->selection_s);
    if (const auto& loss = report.steps[i].loss)
      text += line(", loss after single over merged updates %.4f (%s), knapsacks of %.1f passes", loss->ratio,
                   loss->accepted ? "accepted" : "not accepted", report.steps[i].plan.capacity_permille / 1000.0);
    if (report.steps[i].policy != report.asked[i]) text += "  " + report.steps[i].policy;
    text += '\n';
  }
  for (const RefusedPolicy& refused : report.refused)
    text += refused.policy + " is not possible: " + refused.why + "\n";
  return text;
}

std::string train_json(const TrainReport& report) {
  const GradientWorkload& workload = report.tensors;
  Json steps = Json::array();
  for (size_t i = 0; i < report.steps.size(); ++i) steps.push_back(step_json(report, i));
  const auto refused = [](const RefusedPolicy& each) {
    return Json::object({{"policy", each.policy}, {"why", each.why}});
  };
  Json members = {{"workload", report.workload},
                  {"tensors", workload.tensors.size()},
                  {"bytes", workload.bytes()},
                  {"forward_s", workload.forward_s()},
                  {"backward_s", workload.backward_s()},
                  {"policies", std::move(steps)},
                  {"refused", json_list(report.refused, refused)}};
  if (report.link.link.copy_per_byte_s > 0) members["copy_per_byte_s"] = report.link.link.copy_per_byte_s;
  if (report.link.fitted) members["fits"] = fits_json(*report.link.fitted);
  if (!report.link.ratios.empty()) members["link_ratios"] = report.link.ratios;
  return json_text(members) + "\n";
}

std::string train_list() {
  std::string text = line("%-15s %7s %12s  %s\n", "network", "tensors", "parameters", "what it is");
  for (const std::string_view name : network_names()) {
    const Network network = find_network(name).value();
    text += line("%-15s %7zu %12llu  %s\n", network.name.c_str(), network.tensors.size(),
                 static_cast<unsigned long long>(network.parameters()), network.title.c_str());
  }
  text += line("\n%-21s %11s %12s  %s\n", "with compute time", "forward, ms", "backward, ms", "source");
  for (const NamedComputeTime& each : compute_times()) {
    text += line("%-21s %11.3f %12.3f  %s\n", std::string(each.name).c_str(), 1e3 * each.time.forward_s,
                 1e3 * each.time.backward_s, std::string(each.source).c_str());
  }
  text += line("\n%-21s %11s %12s  %s\n", "of layers", "forward, ms", "backward, ms", "half precision, on an A100");
  for (const Workload& network : workloads()) {
    const Result<GradientWorkload> workload = layer_workload(network.name);
    if (!workload.ok()) continue;
    text += line("%-21s %11.3f %12.3f  %s\n", std::string(network.name).c_str(), 1e3 * workload.value().forward_s(),
                 1e3 * workload.value().backward_s(), std::string(network.summary).c_str());
  }
  return text;
}

}  // namespace trestle
