#include "perf/report/tails.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trestle::perf {

Tails tails_of(const std::vector<double>& samples, size_t skip) {
  Tails tails;
  if (skip >= samples.size()) return tails;
  std::vector<double> sorted(samples.begin() + static_cast<std::ptrdiff_t>(skip), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double count = static_cast<double>(sorted.size());
  const auto percentile = [&](double percent) {
    const double rank = std::ceil(percent / 100 * count);
    return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  tails.min = sorted.front();
  tails.max = sorted.back();
  tails.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  tails.p50 = percentile(50);
  tails.p95 = percentile(95);
  tails.p99 = percentile(99);
  double squares = 0;
  for (const double sample : sorted) squares += (sample - tails.mean) * (sample - tails.mean);
  tails.deviation = std::sqrt(squares / count);
  tails.cv_percent = tails.mean > 0 ? 100 * tails.deviation / tails.mean : 0;
  return tails;
}

}  // namespace trestle::perf
