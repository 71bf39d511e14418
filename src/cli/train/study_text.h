// The study of training iterations (study/training.h) as text and as JSON. Pure, any thread.
#pragma once

#include <string>

#include "study/training.h"

namespace trestle {

std::string training_text(const TrainingStudy& study);
// One object: assumptions, accelerator, variants, workloads (list of name, paper, samples, compute_ns, systems, means,
// fitted). Lists per variant are in the order of `variants`.
std::string training_json(const TrainingStudy& study);

}  // namespace trestle
