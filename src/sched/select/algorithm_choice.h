// The algorithms that TRESTLE_ALGO allows a phase, and the cheapest of them. Belongs to one selection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/model/cost.h"
#include "sched/select/algo_rules.h"

namespace trestle {

class AlgorithmChoice {
 public:
  // rule: nullptr means a free choice. rule and model must outlive this object. rank_order: reducing phases use only
  // algorithms that sum in rank order.
  AlgorithmChoice(const AlgorithmRule* rule, CostModel& model, bool rank_order = false)
      : rule_(rule), model_(model), rank_order_(rank_order) {}

  // In the order of the catalog. For kFlat a list per dimension allows its first entry that can serve.
  std::vector<uint16_t> allowed(PhaseKind kind, uint8_t dimension) const;
  bool possible(PhaseKind kind, uint8_t dimension) const { return !allowed(kind, dimension).empty(); }
  // The cheapest of allowed() for these bytes; ties by the order of the catalog. At least one must be allowed.
  PhaseChoice cheapest(PhaseKind kind, uint8_t dimension, PhaseBytes bytes);
  bool flat() const { return rule_ != nullptr && rule_->flat; }
  bool per_dimension() const { return rule_ != nullptr && !rule_->exclude && rule_->algorithms.size() > 1; }

  CostModel& model() { return model_; }

 private:
  const AlgorithmRule* rule_;
  CostModel& model_;
  const bool rank_order_;
};

// Names of the catalog's algorithms that serve all (serving_any: one) of these kinds for a group, each after a blank.
std::string serving_all(const std::vector<PhaseKind>& kinds, int32_t size, bool rank_order = false);
std::string serving_any(const std::vector<PhaseKind>& kinds, int32_t size);

}  // namespace trestle
