#include "cli/train/train.h"

#include <charconv>
#include <cmath>

#include "base/config/value_text.h"
#include "cli/train/train_text.h"
#include "cli/train/workload_file.h"
#include "gradient/network_cost.h"
#include "gradient/networks.h"

namespace trestle {
namespace {

Error bad(const std::string& what) {
  return Error{Code::kInvalidArgument, what};
}

// Not negative.
Result<double> real(const std::string& option, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc() || read.ptr != end || !std::isfinite(value)) {
    return bad(option + ": \"" + text + "\" is not a number");
  }
  if (value < 0) return bad(option + ": " + text + " is negative");
  return value;
}

Result<std::vector<std::string>> words(const std::string& option, const std::string& text, const std::string& names) {
  const std::vector<std::string> found = split(text, ',');
  if (found.size() != split(names, ',').size()) return bad(option + ": \"" + text + "\" is not " + names);
  return found;
}

struct Pair {
  double first = 0;
  double second = 0;
};

Result<Pair> pair(const std::string& option, const std::string& text, const std::string& names) {
  const std::vector<std::string> found = TRY(words(option, text, names));
  return Pair{TRY(real(option, found[0])), TRY(real(option, found[1]))};
}

Result<MessageCost> cost(const std::string& option, const std::string& text) {
  const Pair read = TRY(pair(option, text, "startup,per_byte"));
  return MessageCost{read.first, read.second};
}

Result<GradientLink> network(const std::string& text) {
  const std::string option = "--network";
  const std::vector<std::string> found = TRY(words(option, text, "alpha,beta,gamma,workers,algorithm"));
  NetworkModel model;
  model.startup_s = TRY(real(option, found[0]));
  model.per_byte_s = TRY(real(option, found[1]));
  model.sum_per_byte_s = TRY(real(option, found[2]));
  const Result<int64_t> workers = parse_integer(found[3]);
  if (!workers.ok()) return bad(option + ": " + workers.error().message);
  if (workers.value() < 1 || workers.value() > 1 << 30)
    return bad(option + ": " + found[3] + " is no number of workers");
  model.workers = static_cast<uint32_t>(workers.value());
  const Result<AllReduceAlgorithm> algorithm = parse_all_reduce_algorithm(found[4]);
  if (!algorithm.ok()) return bad(option + ": " + algorithm.error().message);
  return network_link(model, algorithm.value());
}

Result<GradientLink> link_of(const TrainOptions& options) {
  if (options.cost.empty() == options.network.empty())
    return bad("what messages cost: give either --cost or --network");
  if (options.cost.empty()) {
    if (!options.cost_half.empty()) return bad("--cost-half: goes with --cost");
    return network(options.network);
  }
  GradientLink link = halved_link(TRY(cost("--cost", options.cost)));
  if (!options.cost_half.empty()) {
    link.reduce_scatter = link.all_gather = TRY(cost("--cost-half", options.cost_half));
  }
  return link;
}

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
  const Pair compute = TRY(pair("--compute", options.compute, "forward,backward"));
  const Result<Network> network = find_network(options.workload);
  if (!network.ok()) return bad("--compute: " + network.error().message);
  return workload_of(network.value(), {compute.first, compute.second});
}

Result<GradientWorkload> workload_of(const TrainOptions& options) {
  if (options.workload.empty()) return bad("--workload: name a network or a file; --list shows the networks");
  if (!options.compute.empty()) return with_compute(options);
  if (!is_built_in(options.workload)) {
    const Result<GradientWorkload> read = read_workload_file(options.workload);
    if (read.ok()) return read;
    return bad(read.error().message + " (and it is no built-in workload: --list shows these)");
  }
  const Result<GradientWorkload> built_in = built_in_workload(options.workload);
  if (!built_in.ok()) return bad("--workload: " + built_in.error().message + " with --compute");
  return built_in;
}

Result<uint32_t> liberties_of(const std::string& text) {
  uint32_t liberties = kLibertyNone;
  for (const std::string& name : split(text, ',')) {
    if (name != "stale") return bad("--allow: \"" + name + "\" is no liberty; there is stale");
    liberties |= kLibertyStale;
  }
  return liberties;
}

Result<std::vector<ChosenPolicy>> named_policies(const std::string& text) {
  std::vector<ChosenPolicy> chosen;
  for (const std::string& name : split(text, ',')) {
    const Result<ChosenPolicy> policy = parse_gradient_policy(name);
    if (!policy.ok()) return bad("--policy: " + policy.error().message);
    chosen.push_back(policy.value());
  }
  if (chosen.empty()) return bad("--policy: names no policy");
  return chosen;
}

}  // namespace

double speedup(const TrainReport& report, size_t i) {
  const double iteration_s = report.steps[i].time.iteration_s;
  return iteration_s > 0 ? report.wfbp_s / iteration_s : 1;
}

Result<TrainReport> predict_training(const TrainOptions& options) {
  TrainReport report;
  report.workload = options.workload;
  report.tensors = TRY(workload_of(options));
  if (options.compact) report.tensors = compact(report.tensors);
  report.link = TRY(link_of(options));
  const uint32_t liberties = TRY(liberties_of(options.allow));
  const bool all = options.policies == "all";
  const std::vector<ChosenPolicy> chosen = all ? allowed_policies(liberties) : TRY(named_policies(options.policies));
  const ChosenPolicy wfbp = parse_gradient_policy("wfbp").value();
  report.wfbp_s = TRY(plan_step(wfbp, report.tensors, report.link)).time.iteration_s;
  for (const ChosenPolicy& each : chosen) {
    Result<PlannedStep> step = plan_step(each, report.tensors, report.link, liberties);
    if (!step.ok() && !all) return bad("--policy: " + each.text + ": " + step.error().message);
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
  if (options.list) return train_list();
  const TrainReport report = TRY(predict_training(options));
  return options.json ? train_json(report) : train_text(report);
}

}  // namespace trestle
