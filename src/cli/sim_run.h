// Runs one operation in one of the models and makes a SimView of it. Pure but for the memory it takes; any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/types.h"
#include "cli/sim_view.h"
#include "sched/paper.h"
#include "sim/simulate_schedule.h"

namespace trestle {

struct SimCase {
  PaperCase operation;  // chunks as there: planned in the model of whole phases
  SimModel model = SimModel::kSteps;
  SegmentRule segments;  // steps, engine
};

// Errors (kInvalidArgument): those of run_paper, and for the engine more ranks or segments than fit.
Result<SimView> run_case(const SimCase& sim_case);
// Whether the model engine can hold it: an error (kInvalidArgument) that says how much it can.
Status check_engine_size(const Schedule& schedule, const Topology& topology, const SegmentRule& rule);
SimView view_of(const PaperResult& result, const PaperCase& operation);
// The schedule of a result of the paper's model in whole bytes, its chunks cut where all ranks can share them.
Schedule schedule_in_bytes(const PaperResult& result);

}  // namespace trestle
