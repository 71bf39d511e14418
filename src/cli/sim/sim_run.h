// Runs one operation in one of the models and makes a SimView of it. Pure but for the memory it takes; any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/types.h"
#include "cli/sim/sim_view.h"
#include "sim/simulate_schedule.h"
#include "study/paper.h"

namespace trestle {

struct SimCase {
  // chunks as there. In the model paper planned as there, too; in the others as the library plans, by the model of
  // steps.
  PaperCase operation;
  SimModel model = SimModel::kSteps;
  SegmentRule segments;    // steps, engine
  uint32_t in_flight = 0;  // steps, engine: phases per dimension; 0: the policy's choice
};

// Errors (kInvalidArgument): those of run_paper, and for the engine more ranks or segments than fit.
Result<SimView> run_case(const SimCase& sim_case);
// Whether the model engine can hold it: an error (kInvalidArgument) that says how much it can.
Status check_engine_size(const Schedule& schedule, const Topology& topology, const SegmentRule& rule);
SimView view_of(const PaperResult& result, const PaperCase& operation);

}  // namespace trestle
