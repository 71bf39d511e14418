// The study of the paper as text and as JSON. Pure, any thread.
#pragma once

#include <string>

#include "cli/sim/paper_study.h"

namespace trestle {

std::string study_text(const PaperStudy& study);
// One object: collective, chunks, reducing_switches, systems, means, ideal, paper (its averages; null for other
// systems), sweep, gap_model, steps_gap.
std::string study_json(const PaperStudy& study);

}  // namespace trestle
