#include "compress/ar_topk.h"

#include <cmath>

#include "base/check.h"

namespace trestle {

uint32_t star_root(uint64_t step, uint32_t workers) {
  return static_cast<uint32_t>(step % workers);
}

uint32_t var_root(std::span<const double> norms) {
  size_t root = 0;
  for (size_t rank = 1; rank < norms.size(); ++rank) {
    const bool first_nan = std::isnan(norms[rank]) && !std::isnan(norms[root]);
    if (first_nan || norms[rank] > norms[root]) root = rank;
  }
  return static_cast<uint32_t>(root);
}

std::span<const float> ArTopkWorker::accumulate(std::span<const float> gradient) {
  CHECK(gradient.size() == residual_.size(), "a gradient has the length of its residual");
  for (size_t i = 0; i < gradient.size(); ++i) residual_[i] += gradient[i];
  return residual_;
}

std::vector<float> ArTopkWorker::take(std::span<const uint32_t> indices) {
  std::vector<float> values;
  values.reserve(indices.size());
  for (const uint32_t index : indices) {
    values.push_back(residual_[index]);
    residual_[index] = 0;
  }
  return values;
}

void ArTopkWorker::restore(std::span<const float> residual) {
  CHECK(residual.size() == residual_.size(), "a residual keeps its length");
  residual_.assign(residual.begin(), residual.end());
}

double ArTopkStep::mean_gain() const {
  double sum = 0;
  for (const double gain : gains) sum += gain;
  return sum / static_cast<double>(gains.size());
}

ArTopkStep ar_topk_step(std::span<ArTopkWorker> workers, std::span<const std::vector<float>> gradients, double ratio,
                        RootRule rule, uint64_t step) {
  CHECK(!workers.empty() && workers.size() == gradients.size(), "each worker has one gradient");
  ArTopkStep result;
  std::vector<std::span<const float>> sums;
  for (size_t r = 0; r < workers.size(); ++r) sums.push_back(workers[r].accumulate(gradients[r]));
  const size_t k = top_k_count(ratio, sums.front().size());
  result.root = star_root(step, static_cast<uint32_t>(workers.size()));
  if (rule == RootRule::kVar) {
    for (const std::span<const float> sum : sums) result.norms.push_back(square_norm(top_k(sum, k).values));
    result.root = var_root(result.norms);
  }
  const SparseVector top = top_k(sums[result.root], k);
  result.indices = top.indices;
  result.nans = top.nans;
  std::vector<double> wholes;
  for (const std::span<const float> sum : sums) wholes.push_back(square_norm(sum));
  result.values.assign(top.indices.size(), 0.0f);
  for (size_t r = 0; r < workers.size(); ++r) {
    const std::vector<float> sent = workers[r].take(top.indices);
    result.gains.push_back(compression_gain(square_norm(sent), wholes[r]));
    for (size_t i = 0; i < sent.size(); ++i) result.values[i] += sent[i];
  }
  for (float& value : result.values) value /= static_cast<float>(workers.size());
  return result;
}

}  // namespace trestle
