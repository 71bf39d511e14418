#include "compress/topk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "base/check.h"

namespace trestle {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kNan = kInfinity + 1;

// The bits of a magnitude order like the magnitude. All NaNs are one key, so that the lower index wins among them.
uint32_t key_of(float value) {
  return std::min(std::bit_cast<uint32_t>(value) & 0x7fffffffu, kNan);
}

// How many elements with a certain key are taken besides all with a larger one.
struct Cut {
  uint32_t key = 0;
  size_t of_key = 0;
};

// The k-th largest key. A histogram of the leading bits (exponent and three of the mantissa) says among which elements
// it is, usually a few; the others need no comparison. k: 1 to the length.
Cut find_cut(std::span<const float> vector, size_t k) {
  constexpr uint32_t kShift = 20;
  std::array<std::array<size_t, 2048>, 2> counts{};  // neighbours count apart, or each add would wait for the last
  for (size_t i = 0; i < vector.size(); ++i) ++counts[i % 2][key_of(vector[i]) >> kShift];
  uint32_t digit = 2047;
  size_t rest = k;
  for (; rest > counts[0][digit] + counts[1][digit]; --digit) rest -= counts[0][digit] + counts[1][digit];
  std::vector<uint32_t> keys;
  keys.reserve(counts[0][digit] + counts[1][digit]);
  for (const float value : vector) {
    if (key_of(value) >> kShift == digit) keys.push_back(key_of(value));
  }
  const auto cut = keys.begin() + static_cast<ptrdiff_t>(rest) - 1;
  std::nth_element(keys.begin(), cut, keys.end(), std::greater<>());
  const auto larger = std::count_if(keys.begin(), cut, [&](uint32_t key) { return key > *cut; });
  return {*cut, rest - static_cast<size_t>(larger)};
}

size_t count_nans(std::span<const float> vector) {
  size_t nans = 0;
  for (const float value : vector) nans += std::isnan(value);
  return nans;
}

void push(SparseVector& sparse, size_t index, float value) {
  sparse.indices.push_back(static_cast<uint32_t>(index));
  sparse.values.push_back(value);
}

SparseVector with_room(std::span<const float> vector, size_t k) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  SparseVector sparse;
  sparse.indices.reserve(k);
  sparse.values.reserve(k);
  sparse.nans = count_nans(vector);
  return sparse;
}

// Magnitudes from `keep` on are kept, those from `band` on fill up.
struct Thresholds {
  float keep = INFINITY;
  float band = 0;
};

// Elements that are not finite reach every threshold.
Thresholds bisect(std::span<const float> vector, size_t k) {
  constexpr int kBisections = 25;
  double sum = 0;
  float most = 0;
  size_t finite = 0;
  for (const float value : vector) {
    if (!std::isfinite(value)) continue;
    sum += std::abs(value);
    most = std::max(most, std::abs(value));
    ++finite;
  }
  if (finite == 0) return {};
  const double mean = sum / static_cast<double>(finite);
  Thresholds thresholds;
  double low = 0;
  double high = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double ratio = (low + high) / 2;
    const auto threshold = static_cast<float>(mean + ratio * (most - mean));
    size_t reached = 0;
    for (const float value : vector) reached += !(std::abs(value) < threshold);
    if (reached <= k) {
      high = ratio;
      thresholds.keep = std::min(thresholds.keep, threshold);
    } else {
      low = ratio;
      thresholds.band = std::max(thresholds.band, threshold);
    }
  }
  return thresholds;
}

}  // namespace

size_t top_k_count(double ratio, size_t elements) {
  if (elements == 0) return 0;
  const double wanted = std::ceil(ratio * static_cast<double>(elements));
  if (!(wanted > 1)) return 1;
  return wanted >= static_cast<double>(elements) ? elements : static_cast<size_t>(wanted);
}

double square_norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

double compression_gain(double sent, double gradient) {
  return gradient == 0 ? 1 : sent / gradient;
}

SparseVector top_k(std::span<const float> vector, size_t k) {
  k = std::min(k, vector.size());
  SparseVector sparse = with_room(vector, k);
  if (k == 0) return sparse;
  Cut cut = find_cut(vector, k);
  for (size_t i = 0; sparse.indices.size() < k; ++i) {
    const uint32_t key = key_of(vector[i]);
    if (key < cut.key || (key == cut.key && cut.of_key == 0)) continue;
    if (key == cut.key) --cut.of_key;
    push(sparse, i, vector[i]);
  }
  return sparse;
}

SparseVector layerwise_top_k(std::span<const float> vector, std::span<const size_t> lengths, double ratio) {
  SparseVector all = with_room(vector, 0);
  size_t begin = 0;
  for (const size_t length : lengths) {
    CHECK(length <= vector.size() - begin, "the layers are longer than the vector");
    const SparseVector layer = top_k(vector.subspan(begin, length), top_k_count(ratio, length));
    for (size_t i = 0; i < layer.indices.size(); ++i) push(all, begin + layer.indices[i], layer.values[i]);
    begin += length;
  }
  CHECK(begin == vector.size(), "the layers are shorter than the vector");
  return all;
}

SparseVector ms_top_k(std::span<const float> vector, size_t k) {
  k = std::min(k, vector.size());
  SparseVector sparse = with_room(vector, k);
  if (k == 0) return sparse;
  const Thresholds thresholds = bisect(vector, k);
  size_t kept = 0;
  for (const float value : vector) kept += !(std::abs(value) < thresholds.keep);
  // More than k are not finite: only these are kept, and only the first ones.
  size_t fill = k - std::min(k, kept);
  for (size_t i = 0; i < vector.size() && sparse.indices.size() < k; ++i) {
    const float magnitude = std::abs(vector[i]);
    const bool keep = !(magnitude < thresholds.keep);
    if (!keep && (fill == 0 || magnitude < thresholds.band)) continue;
    if (!keep) --fill;
    push(sparse, i, vector[i]);
  }
  return sparse;
}

}  // namespace trestle
