// One simulated operation as a picture: lanes per dimension coloured by chunk, and utilisation over time.
// Self-contained SVG 1.1, no scripts, no fonts but the viewer's. Pure, any thread.
#pragma once

#include <string>

#include "cli/sim/sim_view.h"

namespace trestle {

std::string sim_svg(const SimView& view);

}  // namespace trestle
