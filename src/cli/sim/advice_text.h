// Advice for designers (study/advice.h) as text and as JSON. Pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "study/advice.h"

namespace trestle {

struct NamedAdvice {
  std::string system;
  Advice advice;
};

std::string advice_text(const std::vector<NamedAdvice>& all);
// One object: bytes, chunks, systems (list of system, ideal_time_ns, fluid_bound_ns, pairs, policies, best,
// one_more_gbps, helps_baseline, helps_best, alike). Dimensions count from 1.
std::string advice_json(const std::vector<NamedAdvice>& all);

}  // namespace trestle
