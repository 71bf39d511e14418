#include "cli/train/train_text.h"

#include "cli/json_writer.h"
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

std::string fitted_json(const char* collective, const FittedCost& fitted) {
  const auto point_json = [&fitted](const CostPoint& point) {
    return json::object({{"bytes", std::to_string(point.bytes)},
                         {"predicted_s", json::exact(point.predicted_s)},
                         {"fitted_s", json::exact(fitted.cost.of(point.bytes))}});
  };
  return json::object({{"collective", json::text(collective)},
                       {"startup_s", json::exact(fitted.cost.startup_s)},
                       {"per_byte_s", json::exact(fitted.cost.per_byte_s)},
                       {"points", json::array(fitted.points, point_json)}});
}

std::string fits_json(const TopologyCost& fitted) {
  return json::array({fitted_json("allreduce", fitted.all_reduce), fitted_json("reducescatter", fitted.reduce_scatter),
                      fitted_json("allgather", fitted.all_gather)});
}

std::string groups_json(const std::vector<TensorGroup>& groups) {
  return json::array(groups, [](const TensorGroup& group) {
    return json::array({std::to_string(group.first), std::to_string(group.last)});
  });
}

// Delayed messages differ from step to step.
std::string messages_of(const PlannedStep& step, const char* unknown) {
  return step.plan.shape == StepShape::kDelayed ? unknown : std::to_string(step.time.messages.size());
}

std::string step_json(const TrainReport& report, size_t i) {
  const PlannedStep& step = report.steps[i];
  std::vector<std::pair<std::string, std::string>> members = {{"policy", json::text(report.asked[i])}};
  if (step.policy != report.asked[i]) members.emplace_back("chosen", json::text(step.policy));
  members.insert(members.end(),
                 {{"iteration_s", json::exact(step.time.iteration_s)},
                  {"exposed_s", json::exact(step.time.exposed_s)},
                  {"speedup_over_wfbp", json::exact(speedup(report, i))},
                  {"messages", messages_of(step, "null")},
                  {"updates_per_iteration", json::exact(step.updates_per_iteration)},
                  {"age", std::to_string(step.age)},
                  {"groups", groups_json(step.plan.groups)},
                  {"gather_groups", groups_json(step.plan.gather_groups)},
                  {"batches", json::array(step.batches, [](uint32_t count) { return std::to_string(count); })}});
  if (step.compressed) {
    members.insert(members.end(), {{"ratio", json::exact(step.compressed->ratio)},
                                   {"collective", json::text(step.compressed->collective)},
                                   {"selection_s", json::exact(step.compressed->selection_s)}});
  }
  if (step.loss) {
    members.insert(members.end(), {{"capacity", json::exact(step.plan.capacity_permille / 1000.0)},
                                   {"loss_ratio", json::exact(step.loss->ratio)},
                                   {"loss_accepted", step.loss->accepted ? "true" : "false"}});
  }
  return json::object(members);
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
                 1e3 * time.exposed_s, speedup(report, i), messages_of(report.steps[i], "-").c_str());
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
  std::vector<std::string> steps;
  for (size_t i = 0; i < report.steps.size(); ++i) steps.push_back(step_json(report, i));
  const auto refused = [](const RefusedPolicy& each) {
    return json::object({{"policy", json::text(each.policy)}, {"why", json::text(each.why)}});
  };
  std::vector<std::pair<std::string, std::string>> members = {
      {"workload", json::text(report.workload)},          {"tensors", std::to_string(workload.tensors.size())},
      {"bytes", std::to_string(workload.bytes())},        {"forward_s", json::exact(workload.forward_s())},
      {"backward_s", json::exact(workload.backward_s())}, {"policies", json::array(steps)},
      {"refused", json::array(report.refused, refused)}};
  if (report.link.link.copy_per_byte_s > 0)
    members.emplace_back("copy_per_byte_s", json::exact(report.link.link.copy_per_byte_s));
  if (report.link.fitted) members.emplace_back("fits", fits_json(*report.link.fitted));
  if (!report.link.ratios.empty()) members.emplace_back("link_ratios", json::array(report.link.ratios, json::exact));
  return json::object(members) + "\n";
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
