// Training steps as a picture: per policy a lane of compute and one for each link, below one another on one axis of
// time. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "cli/train/step_lanes.h"

namespace trestle {

// Spans that are wide enough show their label; all have their details as a tooltip.
std::string lanes_svg(const std::string& title, const std::vector<StepLanes>& steps);

}  // namespace trestle
