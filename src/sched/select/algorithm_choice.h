// Which algorithms a phase may use under TRESTLE_ALGO, and which of them is the cheapest. Belongs to one selection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/model/cost.h"
#include "sched/select/algo_rules.h"

namespace trestle {

class AlgorithmChoice {
 public:
  // `rule` may be nullptr: a free choice. Both outlive this. rank_order: of what reduces only what does so in that
  // order.
  AlgorithmChoice(const AlgorithmRule* rule, CostModel& model, bool rank_order = false)
      : rule_(rule), model_(model), rank_order_(rank_order) {}

  // In the order of the catalog. A list per dimension means for kFlat: the first entry that can serve.
  std::vector<uint16_t> allowed(PhaseKind kind, uint8_t dimension) const;
  bool possible(PhaseKind kind, uint8_t dimension) const { return !allowed(kind, dimension).empty(); }
  // The cheapest of allowed() for these bytes, ties by the order of the catalog. There must be one.
  PhaseChoice cheapest(PhaseKind kind, uint8_t dimension, PhaseBytes bytes);
  bool flat() const { return rule_ != nullptr && rule_->flat; }
  bool per_dimension() const { return rule_ != nullptr && !rule_->exclude && rule_->algorithms.size() > 1; }

  CostModel& model() { return model_; }

 private:
  const AlgorithmRule* rule_;
  CostModel& model_;
  const bool rank_order_;
};

// Names of the catalog's algorithms that serve all (one) of these kinds for a group, each after a blank.
std::string serving_all(const std::vector<PhaseKind>& kinds, int32_t size, bool rank_order = false);
std::string serving_any(const std::vector<PhaseKind>& kinds, int32_t size);

}  // namespace trestle
