// The statistics of -I: times of single iterations.
//
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace trestle::perf {

// In the unit of the samples, except cv_percent.
struct Tails {
  double min = 0, max = 0, mean = 0;
  double p50 = 0, p95 = 0, p99 = 0;  // nearest rank: that many percent of the samples are not larger
  double deviation = 0;              // standard deviation of the population
  double cv_percent = 0;             // deviation over mean
};

// Over all samples except the first `skip`; zeros if none is left.
Tails tails_of(const std::vector<double>& samples, size_t skip);

}  // namespace trestle::perf
