#include "gradient/network_cost.h"

#include <cmath>
#include <string>

#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

struct NamedAlgorithm {
  AllReduceAlgorithm algorithm;
  const char* name;
};

constexpr NamedAlgorithm kNames[] = {
    {AllReduceAlgorithm::kBinaryTree, "binary_tree"},
    {AllReduceAlgorithm::kRecursiveDoubling, "recursive_doubling"},
    {AllReduceAlgorithm::kHalvingDoubling, "halving_doubling"},
    {AllReduceAlgorithm::kDoubleBinaryTree, "double_binary_tree"},
    {AllReduceAlgorithm::kRing, "ring"},
};

}  // namespace

const char* to_string(AllReduceAlgorithm algorithm) {
  for (const NamedAlgorithm& each : kNames) {
    if (each.algorithm == algorithm) return each.name;
  }
  return "invalid";
}

Result<AllReduceAlgorithm> parse_all_reduce_algorithm(std::string_view name) {
  return TRY(row_named(kNames, name, "an all-reduce algorithm"))->algorithm;
}

MessageCost all_reduce_cost(const NetworkModel& network, AllReduceAlgorithm algorithm) {
  if (network.workers <= 1) return {};
  const double n = network.workers;
  const double log_n = std::log2(n);
  const double alpha = network.startup_s;
  const double beta = network.per_byte_s;
  const double gamma = network.sum_per_byte_s;
  switch (algorithm) {
    case AllReduceAlgorithm::kBinaryTree:
      return {2 * alpha * log_n, (2 * beta + gamma) * log_n};
    case AllReduceAlgorithm::kRecursiveDoubling:
      return {alpha * log_n, (beta + gamma) * log_n};
    case AllReduceAlgorithm::kHalvingDoubling:
      return {2 * alpha * log_n, 2 * beta - (2 * beta + gamma) / n + gamma};
    case AllReduceAlgorithm::kDoubleBinaryTree:
      return {2 * alpha * log_n, 2 * beta + gamma};
    case AllReduceAlgorithm::kRing:
      return {2 * (n - 1) * alpha, 2 * (n - 1) / n * beta + (n - 1) / n * gamma};
  }
  return {};
}

GradientLink network_link(const NetworkModel& network, AllReduceAlgorithm algorithm) {
  NetworkModel transfer = network;
  transfer.sum_per_byte_s = 0;
  GradientLink link;
  link.all_reduce = all_reduce_cost(network, algorithm);
  link.all_gather = halved_link(all_reduce_cost(transfer, algorithm)).all_gather;
  link.reduce_scatter = {link.all_reduce.startup_s - link.all_gather.startup_s,
                         link.all_reduce.per_byte_s - link.all_gather.per_byte_s};
  return link;
}

GradientLink halved_link(MessageCost all_reduce) {
  const MessageCost half{all_reduce.startup_s / 2, all_reduce.per_byte_s / 2};
  return {all_reduce, half, half};
}

}  // namespace trestle
