// The measurement of train_step_perf: on every rank, all policies in turn, round by round.
#pragma once

#include "perf/driver/ranks.h"
#include "perf/train_step/report.h"

namespace trestle::perf {

// Runs everything on this thread's only rank. All ranks call it with the same arguments and workload. The workload's
// compute times are scaled as --balance says. The report is complete on the rank that prints, which also prints its
// beginning unless it will be JSON. A failed library call ends the process.
TrainStepReport measure_train_steps(Ranks& ranks, const TrainStepArguments& arguments, GradientWorkload& workload);

}  // namespace trestle::perf
