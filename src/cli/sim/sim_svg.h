// One simulated operation as a picture: lanes per dimension coloured by chunk, and utilisation over time.
// Self-contained SVG 1.1 without scripts; it uses the viewer's fonts. Pure, any thread.
#pragma once

#include <string>

#include "cli/sim/sim_view.h"

namespace trestle {

std::string sim_svg(const SimView& view);

}  // namespace trestle
