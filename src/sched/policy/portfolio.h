// The policies that beat Themis: LP-split (sched/policy/lp_split.h) and `auto`, which takes the best predicted schedule
// of a portfolio. Its members are baseline, Themis first in first out and smallest chunk first, LP-split, and a local
// search that starts from the best of these. Pure, any thread; equal requests give equal schedules.
//
// Simulating a phase takes about 70 ns on present processors. So a search pays if its possible gain (predicted time
// above the fluid bound) over the next few calls is larger than its own time. The budget is a number of simulated
// phases: (predicted - bound) * 16 calls / 70 ns, at most request.most_search_phases (by default 400,000, about 30 ms).
// It is zero if the schedule to beat is already below the bound, and always the maximum in the paper's model.
//
// Members are planned and searched in the model of whole phases. If the request has a second level
// (sched/model/second_level.h), that decides: it times the kEvaluations best schedules of each member by steps, about
// 20 evaluations of at most a millisecond, and the fastest of all is taken.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sched/policy/policies.h"

namespace trestle {

struct Candidate {
  std::string_view name;
  uint32_t chunks = 0;
  uint64_t time_ticks = 0;
};

struct Portfolio {
  std::vector<Candidate> candidates;  // by member; with a second level only the schedules that it has timed
  uint64_t bound_ticks = 0;           // no schedule is faster (sched/policy/fluid_bound.h)
  uint64_t searched_phases = 0;       // simulated by the local search
  PlannedSchedule best;               // the fastest; the first of equal ones
};

Portfolio plan_portfolio(PolicyRequest& request);

PlannedSchedule plan_lp_split(PolicyRequest& request);

}  // namespace trestle
