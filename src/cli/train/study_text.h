// The study of training iterations (study/training.h) as text and as JSON. Pure, any thread.
#pragma once

#include <string>

#include "study/training.h"

namespace trestle {

std::string training_text(const TrainingStudy& study);
// One object: assumptions, accelerator, overlap, chunks, variants, workloads (list of name, source, assumptions,
// parameters, samples, compute_ns, paper; then refused, or systems, means and, if they were fitted, fitted_scale and
// fitted_means). Lists per variant are in the order of `variants`.
std::string training_json(const TrainingStudy& study);

}  // namespace trestle
