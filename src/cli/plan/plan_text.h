// `trestle plan`: the candidates of a selection, and the chosen one as a picture. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "sched/model/predict.h"
#include "sched/select/select.h"

namespace trestle {

struct PlanCandidate {
  std::string policy;  // "" where every policy has it
  bool chosen = false;
  Schedule schedule;
  Prediction prediction;
};

// What the configured policy chooses from, and what the other policies would add, fastest first.
Result<std::vector<PlanCandidate>> plan_candidates(const SelectionRequest& request, const Topology& topology,
                                                   const SelectionConfig& config);
// A table: predicted time, and where it loses: how long the links of each dimension idle.
std::string candidates_text(const std::vector<PlanCandidate>& candidates, const Topology& topology);
// Lanes per dimension over time.
std::string picture_text(const PlanCandidate& candidate, const Topology& topology);

}  // namespace trestle
