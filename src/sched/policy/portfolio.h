// The policies that beat Themis: LP-split (sched/policy/lp_split.h), and `auto`, the best predicted of a portfolio:
// baseline, Themis first in first out and smallest chunk first, LP-split, and a local search that starts from the best
// of them. Pure, any thread; equal requests give equal schedules.
//
// How much is searched: simulating a phase takes about 70 ns on a processor of today, so a search is worth its time if
// what it may gain (predicted time above the fluid bound) over the next few calls is more. Hence the budget, a count of
// simulated phases: (predicted - bound) * 16 calls / 70 ns, at most request.most_search_phases (by default 400,000,
// about 30 ms); none where what is to be beaten is below the bound already; always the most in the paper's model.
//
// Members are planned and searched for in the model of whole phases. Where the request has a second level
// (sched/model/second_level.h) it decides: of each member the kEvaluations best by whole phases are timed by steps,
// some 20 evaluations of at most a millisecond, and the fastest of all is taken.
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
  std::vector<Candidate> candidates;  // by member; with a second level those that it has timed
  uint64_t bound_ticks = 0;           // no schedule is faster (sched/model/fluid_bound.h)
  uint64_t searched_phases = 0;       // simulated by the local search
  PlannedSchedule best;               // the fastest, of equal ones the first
};

Portfolio plan_portfolio(PolicyRequest& request);

PlannedSchedule plan_lp_split(PolicyRequest& request);

}  // namespace trestle
