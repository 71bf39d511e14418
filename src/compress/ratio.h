// The choice of c, the part of the gradient that is sent (FLEX, arXiv 2312.02493, section 4). Pure, any thread.
//
// A large c costs time, a small one loses gradient. Candidates are measured; in between, what was measured is
// interpolated, linearly in the logarithm of c. Each c gets objectives: the time of the cheapest collective, 1 / gain,
// and if it counts the time to compress. The paper searches with NSGA-II, but with one variable no c is dominated by
// another, so a scan over the logarithm of c finds the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compress/choice.h"

namespace trestle {

// c_high = 0.1 divided by 3 down to c_low (the text says "scaling c_low by 3").
inline constexpr std::array<double, 5> kRatioCandidates = {0.1, 0.033, 0.011, 0.004, 0.001};

// What was measured with one candidate, as a mean over iterations from the same state.
struct RatioSample {
  double ratio = 0;
  double gain = 1;  // compress/topk.h
  double compress_s = 0;
};

enum class RatioRule : uint8_t {
  kWeighted,  // the authors' code: the least of the largest weighted objective (achievement scalarising function)
  kKnee,      // the paper's text: the least sum of objectives, which is farthest from the line between the extremes
};

struct RatioSearch {
  std::vector<RatioSample> samples;  // at least one
  SparseExchange exchange;           // its ratio is not read
  RatioRule rule = RatioRule::kWeighted;
  double time_weight = 0.6;    // of kWeighted
  double gain_weight = 0.4;    // of kWeighted
  double compress_weight = 0;  // of kWeighted; for kKnee only whether it is 0
  uint32_t points = 401;       // of the scan, from the largest sampled ratio to the least
};

struct RatioChoice {
  double ratio = 0;
  double gain = 1;        // interpolated
  double compress_s = 0;  // interpolated
  double exchange_s = 0;  // of `collective`
  SparseCollective collective = SparseCollective::kRing;
};

// The sample at this ratio: interpolated, or outside of all samples the nearest one's. samples: ascending by ratio, at
// least one.
RatioSample interpolate(std::span<const RatioSample> samples, double ratio);

// Objectives are normalised to 0 .. 1 over the scan. Of equal ratios the largest wins, because it loses least.
// Errors (kInvalidArgument): no samples, a ratio outside (0, 1] or twice, a gain or time that is not a positive number
// (a time may be 0), no workers or points, negative costs or weights.
Result<RatioChoice> choose_ratio(const RatioSearch& search);

}  // namespace trestle
