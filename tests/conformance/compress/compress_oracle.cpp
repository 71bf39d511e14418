#include "conformance/compress/compress_oracle.h"

#include <cmath>

#include "support/plain_top_k.h"

namespace compressed {
namespace {

using trestle::reference::plain_ms_top_k;
using trestle::reference::sorted_top_k;

size_t count_of(double ratio, size_t elements) {
  if (elements == 0) return 0;
  return std::min(elements, std::max<size_t>(1, static_cast<size_t>(std::ceil(ratio * static_cast<double>(elements)))));
}

double square_norm(const Floats& values, const std::vector<uint32_t>& indices) {
  double sum = 0;
  for (const uint32_t index : indices) sum += double{values[index]} * values[index];
  return sum;
}

double square_norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

bool same(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

Floats gradient_of(int rank, uint64_t step, size_t count) {
  ranks::Random random{(static_cast<uint64_t>(rank) + 1) * 1000003 + step * 7919};
  Floats gradient(count);
  for (float& value : gradient) {
    const uint64_t kind = random.below(10);
    value = kind < 5 ? 0 : static_cast<float>(random.below(kind < 9 ? 7 : 201)) - (kind < 9 ? 3 : 100);
  }
  return gradient;
}

trestleTopKConfig_t Case::config() const {
  trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  config.method = method;
  config.collective = collective;
  config.op = op;
  config.ratio = ratio;
  config.startup = 1e-5;
  config.perByte = 1e-9;
  config.layers = layers.data();
  config.layerCount = layers.size();
  config.steps = steps;
  config.reviewSteps = 3;
  return config;
}

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.ranks << " ranks, " << one.count << " elements, ratio " << one.ratio << ", method " << one.method
             << ", collective " << one.collective << ", op " << one.op << ", from step " << one.steps;
}

std::vector<uint32_t> Oracle::chosen(const Floats& whole) const {
  if (case_.method == trestleTopKMultiSampling) return plain_ms_top_k(whole, count_of(case_.ratio, whole.size()));
  if (case_.method != trestleTopKLayerwise) return sorted_top_k(whole, count_of(case_.ratio, whole.size()));
  std::vector<uint32_t> indices;
  size_t begin = 0;
  for (const size_t length : case_.layers) {
    const Floats layer(whole.begin() + static_cast<ptrdiff_t>(begin),
                       whole.begin() + static_cast<ptrdiff_t>(begin + length));
    for (const uint32_t index : sorted_top_k(layer, count_of(case_.ratio, length)))
      indices.push_back(static_cast<uint32_t>(begin) + index);
    begin += length;
  }
  return indices;
}

void Oracle::fail(const std::vector<Floats>& gradients) {
  for (size_t r = 0; r < residuals_.size(); ++r) {
    for (size_t i = 0; i < case_.count; ++i) residuals_[r][i] += gradients[r][i];
  }
}

void Oracle::step(const std::vector<Floats>& gradients) {
  const auto ranks = static_cast<size_t>(case_.ranks);
  std::vector<std::vector<uint32_t>> indices(ranks);
  fail(gradients);
  for (size_t r = 0; r < ranks; ++r) indices[r] = chosen(residuals_[r]);
  ++step_;
  root_ = -1;
  if (case_.method == trestleTopKStar) root_ = static_cast<int>(step_ % ranks);
  if (case_.method == trestleTopKVar) {
    root_ = 0;
    for (size_t r = 1; r < ranks; ++r) {
      const auto best = static_cast<size_t>(root_);
      if (square_norm(residuals_[r], indices[r]) > square_norm(residuals_[best], indices[best]))
        root_ = static_cast<int>(r);
    }
  }
  if (root_ >= 0) std::fill(indices.begin(), indices.end(), std::vector<uint32_t>(indices[static_cast<size_t>(root_)]));
  elements_ = indices[0].size();
  result_.assign(case_.count, 0);
  gains_.assign(ranks, 1);
  for (size_t r = 0; r < ranks; ++r) {
    const double whole = square_norm(residuals_[r]);
    if (whole != 0) gains_[r] = square_norm(residuals_[r], indices[r]) / whole;
    for (const uint32_t index : indices[r]) {
      result_[index] += residuals_[r][index];
      residuals_[r][index] = 0;
    }
  }
  if (case_.op != trestleAvg) return;
  for (float& value : result_) value /= static_cast<float>(case_.ranks);
}

std::string difference(const Floats& is, const Floats& should) {
  if (is.size() != should.size()) return "lengths differ";
  for (size_t i = 0; i < is.size(); ++i) {
    if (!same(is[i], should[i]))
      return "element " + std::to_string(i) + ": " + std::to_string(is[i]) + " instead of " + std::to_string(should[i]);
  }
  return "";
}

trestleTopK_t make(trestleComm_t comm, const Case& one) {
  const trestleTopKConfig_t config = one.config();
  trestleTopK_t topk = nullptr;
  EXPECT_TRUE(ranks::succeeded(trestleTopKCreate(&topk, comm, one.count, &config), comm));
  return topk;
}

trestleTopKStats_t stats_of(trestleTopK_t topk) {
  trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
  EXPECT_TRUE(ranks::succeeded(trestleTopKGetStats(topk, &stats)));
  return stats;
}

}  // namespace compressed
