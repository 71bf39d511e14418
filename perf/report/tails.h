// The statistics of -I: what single iterations took.
//
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace trestle::perf {

// In the unit of the samples, but cv_percent.
struct Tails {
  double min = 0, max = 0, mean = 0;
  double p50 = 0, p95 = 0, p99 = 0;  // by nearest rank: the smallest sample that so many percent do not exceed
  double deviation = 0;              // of the population
  double cv_percent = 0;             // deviation over mean
};

// Of all samples but the first `skip`; zeros where none is left.
Tails tails_of(const std::vector<double>& samples, size_t skip);

}  // namespace trestle::perf
