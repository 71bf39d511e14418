#include "cli/train/train_link.h"

#include "base/text/value_text.h"
#include "cli/option_values.h"
#include "cli/plan/info.h"
#include "cli/text_line.h"
#include "cli/train/train_options.h"
#include "gradient/policy/topk.h"

namespace trestle {
namespace {

constexpr double kMostRatio = 1000;

Result<MessageCost> cost_value(const std::string& option, const std::string& text) {
  const RealPair read = TRY(real_pair(option, text, "startup,per_byte"));
  return MessageCost{read.first, read.second};
}

Result<TopologyCost> topology_cost(const TrainOptions& options) {
  const Result<Topology> topology = topology_of({.dims = "", .file = options.topo, .ranks = 0}, options.config);
  if (!topology.ok()) return invalid_argument("--topo: " + topology.error().message);
  return fit_topology(topology.value(), selection_of(options.config));
}

Result<GradientLink> stated_cost(const TrainOptions& options) {
  GradientLink link = halved_link(TRY(cost_value("--cost", options.cost)));
  if (!options.cost_half.empty()) {
    link.reduce_scatter = link.all_gather = TRY(cost_value("--cost-half", options.cost_half));
  }
  return link;
}

}  // namespace

Result<TrainNetwork> train_network(const std::string& text) {
  const std::string option = "--network";
  const std::vector<std::string> found = TRY(named_words(option, text, "alpha,beta,gamma,workers,algorithm"));
  TrainNetwork network;
  network.model.startup_s = TRY(real_value(option, found[0]));
  network.model.per_byte_s = TRY(real_value(option, found[1]));
  network.model.sum_per_byte_s = TRY(real_value(option, found[2]));
  const Result<int64_t> workers = parse_integer(found[3]);
  if (!workers.ok()) return invalid_argument(option + ": " + workers.error().message);
  if (workers.value() < 1 || workers.value() > kMostWorkers)
    return invalid_argument(option + ": " + found[3] + " is no number of workers");
  network.model.workers = static_cast<uint32_t>(workers.value());
  const Result<AllReduceAlgorithm> algorithm = parse_all_reduce_algorithm(found[4]);
  if (!algorithm.ok()) return invalid_argument(option + ": " + algorithm.error().message);
  network.algorithm = algorithm.value();
  return network;
}

Result<double> train_copy(const std::string& text) {
  if (text.empty()) return 0.0;
  return real_value("--copy", text);
}

Result<std::vector<double>> train_link_ratios(const std::string& text) {
  if (text.empty()) return std::vector<double>{};
  std::vector<double> ratios = TRY(real_list("--links", text));
  for (const double ratio : ratios) {
    const std::string shown = line("%g", ratio);
    if (ratio <= 0) return invalid_argument("--links: a mu of " + shown + " is not above 0");
    if (ratio < 1)
      return invalid_argument("--links: a mu of " + shown + " is below 1; the first link must be the fastest");
    if (ratio > kMostRatio) return invalid_argument("--links: a mu of " + shown + " is above 1000");
  }
  if (ratios.front() == 1) ratios.erase(ratios.begin());
  return ratios;
}

Result<TrainLink> train_link(const TrainOptions& options) {
  const int given = !options.cost.empty() + !options.network.empty() + !options.topo.empty();
  if (given != 1) return invalid_argument("what messages cost: give one of --cost, --network and --topo");
  if (options.cost.empty() && !options.cost_half.empty()) return invalid_argument("--cost-half: goes with --cost");
  TrainLink found;
  if (!options.cost.empty()) {
    found.link = TRY(stated_cost(options));
  } else if (!options.network.empty()) {
    const TrainNetwork network = TRY(train_network(options.network));
    found.link = network_link(network.model, network.algorithm);
    found.network = network.model;
  } else {
    found.fitted = TRY(topology_cost(options));
    found.link = found.fitted->link();
    found.network = as_ring(found.link.all_reduce, static_cast<uint32_t>(found.fitted->workers));
  }
  found.link.copy_per_byte_s = TRY(train_copy(options.copy));
  found.ratios = TRY(train_link_ratios(options.links));
  return found;
}

}  // namespace trestle
