// The algorithms that TRESTLE_ALGO allows a phase, and the cheapest of them. Belongs to one selection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/model/algo_rules.h"
#include "sched/model/cost.h"

namespace trestle {

// What a call asks of the algorithms of its reducing phases.
struct ReduceDemands {
  bool rank_order = false;    // they sum in rank order
  uint32_t most_sources = 0;  // of one Reduce; 0: any number
  bool met_by(const Algorithm& row, PhaseKind kind, int32_t group_size) const;
};

class AlgorithmChoice {
 public:
  // rule: nullptr means a free choice. rule and model must outlive this object.
  AlgorithmChoice(const AlgorithmRule* rule, CostModel& model, const ReduceDemands& demands = {})
      : rule_(rule), model_(model), demands_(demands) {}

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
  const ReduceDemands demands_;
};

// Names of the catalog's algorithms that serve all (serving_any: one) of these kinds for a group as demanded, each
// after a blank.
std::string serving_all(const std::vector<PhaseKind>& kinds, int32_t size, const ReduceDemands& demands);
std::string serving_any(const std::vector<PhaseKind>& kinds, int32_t size, const ReduceDemands& demands);

}  // namespace trestle
