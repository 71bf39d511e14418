#include "compress/choice.h"

#include <cmath>

namespace trestle {

SparseExchange sparse_exchange(double elements, size_t value_bytes, uint32_t workers) {
  const auto bytes = static_cast<double>(value_bytes);
  SparseExchange exchange;
  exchange.bytes = bytes * elements;
  exchange.workers = workers;
  exchange.index_share = sizeof(uint32_t) / bytes;
  return exchange;
}

const char* to_string(SparseCollective collective) {
  switch (collective) {
    case SparseCollective::kRing:
      return "ring";
    case SparseCollective::kTree:
      return "tree";
    case SparseCollective::kAllGather:
      return "all-gather";
  }
  return "?";
}

double SparseCosts::of(SparseCollective collective) const {
  switch (collective) {
    case SparseCollective::kRing:
      return ring_s;
    case SparseCollective::kTree:
      return tree_s;
    case SparseCollective::kAllGather:
      return all_gather_s;
  }
  return 0;
}

SparseCosts sparse_costs(const SparseExchange& exchange) {
  const double n = exchange.workers;
  const double lg = std::log2(n);
  const double alpha = exchange.startup_s;
  const double sent_s = exchange.bytes * exchange.ratio * exchange.per_byte_s;
  const double share = exchange.index_share;
  return {.ring_s = alpha * (2 * (n - 1) + lg) + sent_s * (2 * (n - 1) / n + share * lg),
          .tree_s = 3 * alpha * lg + (2 + share) * sent_s * lg,
          .all_gather_s = alpha * lg + (1 + share) * sent_s * (n - 1)};
}

SparseCollective cheapest(const SparseCosts& costs) {
  if (costs.ring_s <= costs.tree_s && costs.ring_s <= costs.all_gather_s) return SparseCollective::kRing;
  return costs.tree_s <= costs.all_gather_s ? SparseCollective::kTree : SparseCollective::kAllGather;
}

SparseRules sparse_rules(const SparseExchange& exchange) {
  const double n = exchange.workers;
  if (n <= 1) return {true, true, true};
  const double lg = std::log2(n);
  const double alpha = exchange.startup_s;
  const double sent_s = exchange.bytes * exchange.ratio * exchange.per_byte_s;
  const double share = exchange.index_share;
  SparseRules rules;
  rules.ring_beats_tree = n <= 2 || alpha <= (lg - (n - 1) / n) / (n - 1 - lg) * sent_s;
  rules.ring_beats_all_gather = alpha <= ((1 + share) / 2 - 1 / n - share * lg / (2 * (n - 1))) * sent_s;
  rules.tree_beats_all_gather = alpha <= ((1 + share) / 2 * (n - 1) / lg - (2 + share) / 2) * sent_s;
  return rules;
}

SparseCollective chosen_by(const SparseRules& rules) {
  if (rules.ring_beats_tree)
    return rules.ring_beats_all_gather ? SparseCollective::kRing : SparseCollective::kAllGather;
  return rules.tree_beats_all_gather ? SparseCollective::kTree : SparseCollective::kAllGather;
}

}  // namespace trestle
