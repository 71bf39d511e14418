// Runs one operation in one of the models and makes a SimView of it. Pure, except for its use of memory; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "cli/sim/sim_view.h"
#include "sim/simulate_schedule.h"
#include "study/paper.h"

namespace trestle {

struct SimCase {
  // Number of chunks: as in PaperCase. The model paper also plans like run_paper. The other models plan like the
  // library, by the model of steps.
  PaperCase operation;
  SimModel model = SimModel::kSteps;
  SegmentRule segments;    // steps, engine
  uint32_t in_flight = 0;  // steps, engine: phases per dimension; 0: the policy's choice
  SimWork work;            // engine
  // engine: what happens to rails, and the rules of TRESTLE_EAGER and TRESTLE_RAIL_TIMEOUT for them.
  std::vector<SimRailRequest> rails;
  uint64_t seed = 1;
  uint64_t whole_bytes = 16 * 1024;
  int64_t rail_silence_ns = 3'000'000'000;
};

// Errors (kInvalidArgument): those of run_paper, and for the engine more ranks or segments than fit.
Result<SimView> run_case(const SimCase& sim_case);
// An error (kInvalidArgument) that states the limits if the operation is too large for the model engine.
Status check_engine_size(const Schedule& schedule, const Topology& topology, const SegmentRule& rule);
SimView view_of(const PaperResult& result, const PaperCase& operation);

}  // namespace trestle
