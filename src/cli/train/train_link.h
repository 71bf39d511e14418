// What messages cost in `trestle train`: the options --cost, --network and --topo, --copy and --links. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/train/topology_cost.h"
#include "gradient/network_cost.h"

namespace trestle {

struct TrainOptions;

struct TrainLink {
  GradientLink link;
  std::optional<TopologyCost> fitted;  // of --topo
  // Of each link beside the first (StepPlanRequest::link_ratios, gradient/policy/policy.h).
  std::vector<double> ratios;
  // For topk. With --topo: the costs of messages with which the all-reduce of a ring takes as long. None with --cost.
  std::optional<NetworkModel> network;
};

// Reads the topology file that the options name. Errors (kInvalidArgument) are one sentence that begins with the
// option.
Result<TrainLink> train_link(const TrainOptions& options);

struct TrainNetwork {
  NetworkModel model;
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::kRing;
};
// alpha,beta,gamma,workers,algorithm.
Result<TrainNetwork> train_network(const std::string& text);

// Seconds per byte and copy (GradientLink::copy_per_byte_s); 0 for an empty text.
Result<double> train_copy(const std::string& text);

// The mu of every link, where the first one has 1. A list that does not begin with 1 leaves the first one out: "1.65"
// and "1,1.65" are the same. Returns those of the others.
Result<std::vector<double>> train_link_ratios(const std::string& text);

}  // namespace trestle
