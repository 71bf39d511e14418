// The links of the model of steps. Simulates the segments of one schedule's phases over time. Pure; used by StepsModel.
#pragma once

#include <vector>

#include "sched/model/steps_model.h"

namespace trestle {

// phases[chunk][stage] belongs to the schedule's phase. intervals: see StepsOptions.
StepsResult run_links(const Schedule& schedule, const std::vector<std::vector<const StepsPhase*>>& phases,
                      bool intervals);

}  // namespace trestle
