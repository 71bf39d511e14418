// The links of the model of steps: moves the segments of one schedule's phases through time. Pure; used by StepsModel.
#pragma once

#include <vector>

#include "sched/model/steps_model.h"

namespace trestle {

// phases[chunk][stage]: as the schedule's. intervals: see StepsOptions.
StepsResult run_links(const Schedule& schedule, const std::vector<std::vector<const StepsPhase*>>& phases,
                      bool intervals);

}  // namespace trestle
