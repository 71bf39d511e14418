// DeFT's Preserver (arXiv 2503.16815, section 4). It compares the loss after a sequence of merged updates with the loss
// after single ones. If they differ too much, the knapsacks grow, so that there are more updates. Pure, any thread.
//
// The model of one update: s' = S* + |s - S* - eta D|, D ~ N(mu, sigma^2 / B). s is the loss, S* its least value, eta
// the learning rate, B the batch, D the gradient's effect on the loss. The loss rebounds at S*. mu and sigma are inputs
// to be measured: the paper's Table V needs another mu for its merged updates than for its single ones.
// Not modelled: staleness (gradient/deft/simulate.h has the updates' ages).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "gradient/deft_buckets.h"

namespace trestle {

// What an update of k merged batches does: their sum (drift k mu, deviation sqrt(k) sigma / sqrt(B)), or their mean
// (drift mu, deviation sigma / sqrt(k B)).
enum class MergedUpdate : uint8_t { kSum, kMean };

struct PreserverModel {
  double loss = 0;        // s, at the beginning
  double least_loss = 0;  // S*
  double rate = 0;        // eta
  double drift = 0;       // mu
  double deviation = 0;   // sigma
  double batch = 1;       // B, samples
  MergedUpdate merged = MergedUpdate::kSum;
  double epsilon = 0.01;  // accepted distance of the ratio from 1
};

// The expected loss after an update of `batches` merged batches (the paper's formula, with its Delta s_t read as mu):
// S* + m (Phi(a) - Phi(-a)) + d sqrt(2/pi) exp(-a^2/2), m = loss - S* - drift, d the deviation, a = m/d. d = 0: S* +
// |m|.
double expected_loss(const PreserverModel& model, double loss, uint32_t batches);

struct PreserverRatio {
  double single_loss = 0;  // after as many single updates as there are batches
  double merged_loss = 0;  // after the merged updates
  double ratio = 1;        // single / merged; 1 if both are 0
  bool accepted = false;   // |ratio - 1| <= epsilon
  bool operator==(const PreserverRatio&) const = default;
};

// batches: of each update, in order (deft_cycle, gradient/deft/simulate.h).
PreserverRatio compare_updates(const PreserverModel& model, std::span<const uint32_t> batches);

struct PreserverReport {
  PreserverRatio last;   // also if it is not accepted
  uint32_t retries = 0;  // at most 10
  uint32_t capacity_permille = 1000;
  std::vector<uint32_t> batches;  // of one cycle with that capacity
};

// Grows the capacities by a tenth of the pass per retry until the ratio is accepted, at most 10 times, and reports the
// last. Errors: those of deft_cycle; a model with values that are not finite, or a negative deviation, or a batch that
// is not positive (kInvalidArgument).
Result<PreserverReport> preserve(const DeftSystem& system, const PreserverModel& model);

}  // namespace trestle
