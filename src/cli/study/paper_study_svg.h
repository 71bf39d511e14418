// The activity of each dimension over time under each policy, side by side (the paper's figure 10): SVG. Pure, any
// thread.
#pragma once

#include <string>

#include "cli/study/paper_study.h"

namespace trestle {

std::string study_svg(const PaperStudy& study);

}  // namespace trestle
