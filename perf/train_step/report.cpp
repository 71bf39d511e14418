#include "perf/train_step/report.h"

#include <algorithm>
#include <optional>

#include "perf/report/json.h"
#include "perf/report/table.h"
#include "perf/report/tails.h"

namespace trestle::perf {
namespace {

constexpr double kMs = 1e3;
constexpr double kMb = 1e-6;

double compute_s(const TrainStepReport& report) {
  return report.workload.forward_s() + report.workload.backward_s();
}

double ratio(const PolicyOutcome& outcome) {
  return outcome.simulated_s > 0 ? median_of(outcome.iteration_s) / outcome.simulated_s : 0;
}

double balance(const TrainStepReport& report) {
  return compute_s(report) > 0 ? report.all_reduce_s / compute_s(report) : 0;
}

std::string links_text(const TrainStepArguments& arguments) {
  if (arguments.links.empty()) return "the job's communicator";
  std::string all;
  for (const std::string& rails : arguments.links) all += (all.empty() ? "a communicator over " : ", over ") + rails;
  return all;
}

std::string row(const TrainStepReport& report, const PolicyOutcome& outcome) {
  if (!outcome.refused.empty()) return text("  %-22s not carried out: ", outcome.policy.c_str()) + outcome.refused;
  const auto [least, most] = std::minmax_element(outcome.iteration_s.begin(), outcome.iteration_s.end());
  const Tails ready = tails_of(outcome.ready_ns, 0);
  std::string columns = text("  %-22s %10.3f %10.3f %10.3f %10.3f %6.3f %10.3f %10.3f %8.1f %9.3f %6.0f %7.0f %9.0f",
                             outcome.policy.c_str(), kMs * median_of(outcome.iteration_s), kMs * *least, kMs * *most,
                             kMs * outcome.simulated_s, ratio(outcome), kMs * exposed_s(report, outcome),
                             kMs * outcome.simulated_exposed_s, outcome.messages, kMb * outcome.copied_bytes, ready.p50,
                             ready.p99, ready.max);
  columns += outcome.compared ? text(" %7llu", static_cast<unsigned long long>(outcome.wrong)) : text(" %7s", "N/A");
  if (outcome.chosen != outcome.policy) columns += "  " + outcome.chosen;
  if (outcome.delayed)
    columns += text("  %.3f updates a step, simulated %.3f", outcome.updates, outcome.simulated_updates);
  return columns;
}

void outcome_json(Json& json, const TrainStepReport& report, const PolicyOutcome& outcome) {
  json.open('{').key("policy").text(outcome.policy).key("carried_out").truth(outcome.refused.empty());
  if (!outcome.refused.empty()) {
    json.key("why").text(outcome.refused).close('}');
    return;
  }
  json.key("chosen").text(outcome.chosen).key("iterations_s").numbers(outcome.iteration_s);
  json.key("iteration_s").number(median_of(outcome.iteration_s));
  json.key("simulated_s").number(outcome.simulated_s).key("ratio").number(ratio(outcome));
  json.key("exposed_s").number(exposed_s(report, outcome));
  json.key("simulated_exposed_s").number(outcome.simulated_exposed_s);
  json.key("messages").number(outcome.messages).key("bytes").number(outcome.bytes);
  json.key("copied_bytes").number(outcome.copied_bytes).key("late_s").number(outcome.late_s);
  json.key("updates").number(outcome.updates).key("simulated_updates").number(outcome.simulated_updates);
  const Tails ready = tails_of(outcome.ready_ns, 0);
  json.key("grad_ready_ns").open('{').key("calls").integer(outcome.ready_ns.size());
  json.key("p50").number(ready.p50).key("p99").number(ready.p99).key("max").number(ready.max).close('}');
  json.key("wrong").integer(outcome.compared ? std::optional(outcome.wrong) : std::nullopt).close('}');
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double exposed_s(const TrainStepReport& report, const PolicyOutcome& outcome) {
  return std::max(median_of(outcome.iteration_s) - compute_s(report), 0.0);
}

uint64_t wrong_elements(const TrainStepReport& report) {
  uint64_t wrong = 0;
  for (const PolicyOutcome& outcome : report.policies) wrong += outcome.wrong;
  return wrong;
}

std::vector<std::string> beginning_lines(const TrainStepReport& report) {
  const TrainStepArguments& arguments = report.arguments;
  const GradientWorkload& workload = report.workload;
  return {
      text("# %s: %zu tensors, %.3f MB of gradients, forward %.3f ms, backward %.3f ms", arguments.workload.c_str(),
           workload.tensors.size(), kMb * static_cast<double>(workload.bytes()), kMs * workload.forward_s(),
           kMs * workload.backward_s()),
      text("# %d ranks. One all-reduce of all bytes takes %.3f ms, %.3f of the compute time", report.ranks,
           kMs * report.all_reduce_s, balance(report)),
      text("# %d rounds of all policies in turn, each %d timed steps behind %d; costs and times are %s",
           arguments.rounds, arguments.steps, arguments.warmup, arguments.cost ? "given" : "measured"),
      "# Links: " + links_text(arguments),
      text("# Tensors lie %s. Gradients are %s", arguments.apart ? "apart" : "together",
           arguments.check ? "compared with a plain all-reduce after every step" : "not compared"),
  };
}

std::vector<std::string> table_lines(const TrainStepReport& report) {
  std::vector<std::string> lines = {
      text("# %-22s %10s %10s %10s %10s %6s %10s %10s %8s %9s %24s %7s", "iteration", "median", "lowest", "highest",
           "simulated", "", "exposed", "simulated", "messages", "copied", "GradReady   ", ""),
      text("# %-22s %10s %10s %10s %10s %6s %10s %10s %8s %9s %6s %7s %9s %7s", "policy", "(ms)", "(ms)", "(ms)",
           "(ms)", "ratio", "(ms)", "(ms)", "(a step)", "(MB)", "p50", "p99", "max, ns", "#wrong"),
  };
  for (const PolicyOutcome& outcome : report.policies) lines.push_back(row(report, outcome));
  return lines;
}

std::string report_json(const TrainStepReport& report) {
  const TrainStepArguments& arguments = report.arguments;
  Json json;
  json.open('{').key("workload").text(arguments.workload);
  json.key("tensors").integer(report.workload.tensors.size());
  json.key("bytes").integer(report.workload.bytes());
  json.key("forward_s").number(report.workload.forward_s()).key("backward_s").number(report.workload.backward_s());
  json.key("ranks").integer(report.ranks).key("rounds").integer(arguments.rounds);
  json.key("warmup").integer(arguments.warmup).key("steps").integer(arguments.steps);
  json.key("all_reduce_s").number(report.all_reduce_s).key("communication_over_compute").number(balance(report));
  json.key("measured_times").truth(!arguments.cost).key("together").truth(!arguments.apart);
  json.key("links").open('[');
  for (const std::string& rails : arguments.links) json.text(rails);
  json.close(']').key("checked").truth(arguments.check).key("policies").open('[');
  for (const PolicyOutcome& outcome : report.policies) outcome_json(json, report, outcome);
  return json.close(']').close('}').str();
}

}  // namespace trestle::perf
