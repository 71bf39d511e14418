// Chooses DeAR's buffer size by trials: Bayesian optimisation on a grid of 1 to 100 MiB. Pure, any thread; equal trials
// give equal choices, so no seed is needed.
//
// DeAR (arXiv 2302.12445), its tuned tensor fusion. Gaussian process: Matern 5/2 on standardised times, noise 1e-4, the
// length scale by marginal likelihood. Expected improvement with xi = 0.1 in standardised units. The authors' code
// applies xi to seconds; that exceeds any improvement of a short step, so that it only explores.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace trestle {

inline constexpr uint32_t kFirstBufferMib = 25;
inline constexpr uint32_t kMostBufferMib = 100;
inline constexpr uint32_t kTuningTrials = 20;  // as in the paper's cost figure; its code stops after 10

struct BufferTrial {
  uint32_t mib = 0;
  double iteration_s = 0;  // measured: the mean of several steps
};

// The size to try next: one that has not been tried. At most kMostBufferMib trials.
uint32_t next_buffer_mib(std::span<const BufferTrial> trials);
// The best measured one; ties: the earliest. At least one trial.
uint32_t best_buffer_mib(std::span<const BufferTrial> trials);
// Both, so many times, at most kMostBufferMib. With several ranks, rank 0 must choose for all.
uint32_t tune_buffer(const std::function<double(uint32_t mib)>& iteration_s, uint32_t trials);

}  // namespace trestle
