// The workload that train_step_perf replays: the tensors of `trestle train`, scaled.
//
// Reads the file that the arguments name; else pure. Any thread.
#pragma once

#include "base/result.h"
#include "gradient/workload.h"
#include "perf/train_step/arguments.h"

namespace trestle::perf {

// Bytes are whole float elements: at least one where the tensor has any. Errors (kInvalidArgument) are a sentence that
// begins with the flag: no such network or file, no compute time that --balance could scale.
Result<GradientWorkload> replayed_workload(const TrainStepArguments& arguments);

void scale_compute(GradientWorkload& workload, double factor);

}  // namespace trestle::perf
