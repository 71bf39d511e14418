#include "gradient/policy/buffer_tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace trestle {
namespace {

constexpr double kNoise = 1e-4;
constexpr double kXi = 0.1;
constexpr double kLengths[] = {2, 4, 8, 16, 32, 64};  // MiB

double matern(double distance, double length) {
  const double r = std::sqrt(5.0) * std::fabs(distance) / length;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// Mean 0, deviation 1; all zero if the times are equal.
std::vector<double> standardised(std::span<const BufferTrial> trials) {
  const auto count = static_cast<double>(trials.size());
  double mean = 0;
  for (const BufferTrial& trial : trials) mean += trial.iteration_s / count;
  double variance = 0;
  for (const BufferTrial& trial : trials) variance += std::pow(trial.iteration_s - mean, 2) / count;
  const double deviation = variance > 0 ? std::sqrt(variance) : 1;
  std::vector<double> y;
  for (const BufferTrial& trial : trials) y.push_back((trial.iteration_s - mean) / deviation);
  return y;
}

// A Gaussian process of one length scale, by the Cholesky factor of the covariance of the trials.
class Process {
 public:
  Process(std::span<const BufferTrial> trials, const std::vector<double>& y, double length)
      : trials_(trials), length_(length), factor_(trials.size(), std::vector<double>(trials.size(), 0)) {
    for (size_t i = 0; i < trials.size(); ++i) {
      for (size_t k = 0; k <= i; ++k) {
        double sum = covariance(i, trials[k].mib) + (i == k ? kNoise : 0);
        for (size_t m = 0; m < k; ++m) sum -= factor_[i][m] * factor_[k][m];
        factor_[i][k] = i == k ? std::sqrt(sum) : sum / factor_[k][k];
      }
    }
    weights_ = forward(y);
  }

  double log_likelihood() const {
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      sum -= weights_[i] * weights_[i] / 2 + std::log(factor_[i][i]);
    }
    return sum;
  }

  // By how much a trial is expected to be below `least`.
  double expected_improvement(uint32_t mib, double least) const {
    std::vector<double> k(trials_.size());
    for (size_t i = 0; i < k.size(); ++i) k[i] = covariance(i, mib);
    k = forward(k);
    double mean = 0;
    double variance = 1;
    for (size_t i = 0; i < k.size(); ++i) {
      mean += k[i] * weights_[i];
      variance -= k[i] * k[i];
    }
    const double deviation = std::sqrt(std::max(variance, 1e-12));
    const double gain = least - mean - kXi;
    const double z = gain / deviation;
    const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
    return gain * below + deviation * std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  }

 private:
  double covariance(size_t trial, uint32_t mib) const {
    return matern(static_cast<double>(trials_[trial].mib) - static_cast<double>(mib), length_);
  }
  // Solves factor_ * x = y.
  std::vector<double> forward(std::vector<double> y) const {
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t m = 0; m < i; ++m) y[i] -= factor_[i][m] * y[m];
      y[i] /= factor_[i][i];
    }
    return y;
  }

  std::span<const BufferTrial> trials_;
  double length_;
  std::vector<std::vector<double>> factor_;  // lower triangle
  std::vector<double> weights_;              // the standardised times, solved by factor_
};

Process likeliest(std::span<const BufferTrial> trials, const std::vector<double>& y) {
  Process best(trials, y, kLengths[0]);
  for (const double length : kLengths) {
    Process process(trials, y, length);
    if (process.log_likelihood() > best.log_likelihood()) best = std::move(process);
  }
  return best;
}

}  // namespace

uint32_t next_buffer_mib(std::span<const BufferTrial> trials) {
  if (trials.empty()) return kFirstBufferMib;
  const std::vector<double> y = standardised(trials);
  const Process process = likeliest(trials, y);
  const double least = *std::min_element(y.begin(), y.end());
  double most = -std::numeric_limits<double>::infinity();
  uint32_t best = kFirstBufferMib;
  for (uint32_t mib = 1; mib <= kMostBufferMib; ++mib) {
    if (std::ranges::any_of(trials, [mib](const BufferTrial& trial) { return trial.mib == mib; })) continue;
    const double gain = process.expected_improvement(mib, least);
    if (gain <= most) continue;
    most = gain;
    best = mib;
  }
  return best;
}

uint32_t best_buffer_mib(std::span<const BufferTrial> trials) {
  const auto faster = [](const BufferTrial& a, const BufferTrial& b) { return a.iteration_s < b.iteration_s; };
  return std::min_element(trials.begin(), trials.end(), faster)->mib;
}

uint32_t tune_buffer(const std::function<double(uint32_t mib)>& iteration_s, uint32_t trials) {
  std::vector<BufferTrial> done;
  for (uint32_t i = 0; i < trials; ++i) {
    const uint32_t mib = next_buffer_mib(done);
    done.push_back({mib, iteration_s(mib)});
  }
  return best_buffer_mib(done);
}

}  // namespace trestle
