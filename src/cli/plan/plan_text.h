// `trestle plan`: the candidates of a selection, and the chosen one as a picture. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "sched/model/predict.h"
#include "sched/select/select.h"

namespace trestle {

struct PlanCandidate {
  std::string policy;  // "" if every policy has it
  bool chosen = false;
  Schedule schedule;
  Prediction prediction;
};

// The candidates of the configured policy, and those that the other policies would add; the fastest first.
Result<std::vector<PlanCandidate>> plan_candidates(const SelectionRequest& request, const Topology& topology,
                                                   const SelectionConfig& config);
// A table of predicted times and of the idle time of each dimension's links.
std::string candidates_text(const std::vector<PlanCandidate>& candidates, const Topology& topology);
// A picture with one lane per dimension over time.
std::string picture_text(const PlanCandidate& candidate, const Topology& topology);

}  // namespace trestle
