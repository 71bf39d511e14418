// SVG pictures of each dimension's activity over time, with the policies side by side (the paper's figure 10). Pure,
// any thread.
#pragma once

#include <string>

#include "cli/sim/paper_study.h"

namespace trestle {

std::string study_svg(const PaperStudy& study);

}  // namespace trestle
