#include "compress/topk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "kernels/sparse.h"

namespace trestle {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kNan = kInfinity + 1;
constexpr float kInfinite = std::numeric_limits<float>::infinity();

uint32_t narrow(size_t index) {
  return static_cast<uint32_t>(index);
}

// The bits of a magnitude order like the magnitude. All NaNs are one key, so that the lower index wins among them.
uint32_t key_of(float value) {
  return std::min(std::bit_cast<uint32_t>(value) & 0x7fffffffu, kNan);
}

// The least magnitude with at least this key. NaNs reach every threshold.
float threshold_of(uint32_t key) {
  return std::bit_cast<float>(std::min(key, kInfinity));
}

// The elements that reach a threshold, in the order of indices.
struct Candidates {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  size_t size() const { return indices.size(); }
};

// expected: about how many there are.
Candidates candidates_of(std::span<const float> vector, float threshold, size_t expected = 0) {
  constexpr size_t kBlock = 2048;  // so that what is selected fits in the first-level cache
  std::array<uint32_t, kBlock + kSelectSlack> indices;
  std::array<float, kBlock + kSelectSlack> values;
  Candidates candidates;
  candidates.indices.reserve(expected);
  candidates.values.reserve(expected);
  for (size_t begin = 0; begin < vector.size(); begin += kBlock) {
    const size_t count = select_reaching(indices.data(), values.data(), vector.data() + begin,
                                         std::min(kBlock, vector.size() - begin), threshold, narrow(begin));
    candidates.indices.insert(candidates.indices.end(), indices.begin(), indices.begin() + count);
    candidates.values.insert(candidates.values.end(), values.begin(), values.begin() + count);
  }
  return candidates;
}

// A threshold that probably at least k elements reach, and not many more: so many of a sample do that k of the whole
// would have to be four standard deviations too few.
float likely_threshold(std::span<const float> vector, size_t k) {
  constexpr size_t kLeastSample = 1024, kMostSample = 4096, kElementsPerSample = 64;
  const size_t sample = std::clamp(vector.size() / kElementsPerSample, kLeastSample, kMostSample);
  if (vector.size() < 4 * sample) return 0;
  const double expected = static_cast<double>(sample) * static_cast<double>(k) / static_cast<double>(vector.size());
  const double wanted = std::ceil(expected + 4 * std::sqrt(expected) + 4);
  if (wanted >= static_cast<double>(sample)) return 0;
  std::vector<uint32_t> keys(sample);
  const size_t stride = vector.size() / sample;
  for (size_t s = 0; s < sample; ++s) keys[s] = key_of(vector[s * stride + stride / 2]);
  const auto cut = keys.begin() + static_cast<ptrdiff_t>(wanted) - 1;
  std::nth_element(keys.begin(), cut, keys.end(), std::greater<>());
  return threshold_of(*cut);
}

// Keys that begin like the k-th largest, by a histogram of the leading bits (exponent and three of the mantissa).
struct Bucket {
  static constexpr uint32_t kShift = 20;
  uint32_t digit = 0;  // the leading bits
  size_t rest = 0;     // how many of the k are in it
  size_t size = 0;
};

// k: 1 to the number of values.
Bucket find_bucket(std::span<const float> values, size_t k) {
  std::array<std::array<size_t, 2048>, 2> counts{};  // neighbours count apart, or each add would wait for the last
  for (size_t i = 0; i < values.size(); ++i) ++counts[i % 2][key_of(values[i]) >> Bucket::kShift];
  const auto size = [&](uint32_t digit) { return counts[0][digit] + counts[1][digit]; };
  Bucket bucket{2047, k, 0};
  for (; bucket.rest > size(bucket.digit); --bucket.digit) bucket.rest -= size(bucket.digit);
  bucket.size = size(bucket.digit);
  return bucket;
}

// A threshold that at least k elements reach, for vectors of which a sample tells little.
float certain_threshold(std::span<const float> vector, size_t k) {
  return threshold_of(find_bucket(vector, k).digit << Bucket::kShift);
}

// At least the k largest elements.
Candidates largest_candidates(std::span<const float> vector, size_t k) {
  Candidates candidates = candidates_of(vector, likely_threshold(vector, k), k + k / 4);
  return candidates.size() >= k ? candidates : candidates_of(vector, certain_threshold(vector, k));
}

// How many elements with a certain key are taken besides all with a larger one.
struct Cut {
  uint32_t key = 0;
  size_t of_key = 0;
};

// The k-th largest key. k: 1 to the number of values.
Cut find_cut(std::span<const float> values, size_t k) {
  constexpr size_t kFew = 2048;  // a histogram would take longer
  std::vector<uint32_t> keys;
  size_t rest = k;
  if (values.size() <= kFew) {
    keys.resize(values.size());
    std::transform(values.begin(), values.end(), keys.begin(), key_of);
  } else {
    const Bucket bucket = find_bucket(values, k);
    rest = bucket.rest;
    keys.reserve(bucket.size);
    for (const float value : values) {
      if (key_of(value) >> Bucket::kShift == bucket.digit) keys.push_back(key_of(value));
    }
  }
  const auto cut = keys.begin() + static_cast<ptrdiff_t>(rest) - 1;
  std::nth_element(keys.begin(), cut, keys.end(), std::greater<>());
  const auto larger = std::count_if(keys.begin(), cut, [&](uint32_t key) { return key > *cut; });
  return {*cut, rest - static_cast<size_t>(larger)};
}

size_t count_nans(std::span<const float> values) {
  return static_cast<size_t>(std::count_if(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

void push(SparseVector& sparse, uint32_t index, float value) {
  sparse.indices.push_back(index);
  sparse.values.push_back(value);
}

SparseVector with_room(size_t k) {
  SparseVector sparse;
  sparse.indices.reserve(k);
  sparse.values.reserve(k);
  return sparse;
}

// Without any element. A NaN reaches infinity, too.
SparseVector nothing_of(std::span<const float> vector) {
  SparseVector sparse;
  sparse.nans = count_nans(candidates_of(vector, kInfinite).values);
  return sparse;
}

// Magnitudes from `keep` on are kept, those from `band` on fill up.
struct Thresholds {
  float keep = kInfinite;
  float band = 0;
};

// The elements from `band` on, below `keep`.
std::vector<float> between(std::span<const float> values, const Thresholds& thresholds) {
  std::vector<float> rest = candidates_of(values, thresholds.band).values;
  std::erase_if(rest, [&](float value) { return !(std::abs(value) < thresholds.keep); });
  return rest;
}

// Later thresholds are never outside of the present two. So elements above are only counted once, elements below never,
// and only the others are read again. Elements that are not finite reach every threshold.
Thresholds bisect(std::span<const float> vector, size_t k) {
  constexpr int kBisections = 25;
  Thresholds thresholds;
  const MagnitudeSummary summary = summarize_magnitudes(vector.data(), vector.size());
  if (summary.finite == 0) return thresholds;
  const double mean = summary.sum / static_cast<double>(summary.finite);
  const double range = summary.largest - mean;  // below 0 only by rounding, where all magnitudes are equal
  std::vector<float> memory;
  std::span<const float> rest = vector;
  size_t above = 0;  // elements outside of `rest` that reach every later threshold
  size_t reach_keep = vector.size() - summary.finite;
  size_t reach_band = vector.size();
  double low = 0;
  double high = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double ratio = (low + high) / 2;
    const auto threshold = static_cast<float>(mean + ratio * range);
    const size_t reached = above + count_reaching(rest.data(), rest.size(), threshold);
    if (reached <= k) {
      high = ratio;
      if (threshold < thresholds.keep) reach_keep = reached;
      thresholds.keep = std::min(thresholds.keep, threshold);
    } else {
      low = ratio;
      if (threshold > thresholds.band) reach_band = reached;
      thresholds.band = std::max(thresholds.band, threshold);
    }
    if (range < 0 || reach_band - reach_keep > rest.size() / 4) continue;
    std::vector<float> fewer = between(rest, thresholds);
    memory.swap(fewer);
    rest = memory;
    above = reach_keep;
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
  return square_sum(values.data(), values.size());
}

double compression_gain(double sent, double gradient) {
  return gradient == 0 ? 1 : sent / gradient;
}

SparseVector top_k(std::span<const float> vector, size_t k) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  k = std::min(k, vector.size());
  if (k == 0) return nothing_of(vector);
  const Candidates candidates = largest_candidates(vector, k);
  SparseVector sparse = with_room(k);
  sparse.nans = count_nans(candidates.values);
  Cut cut = find_cut(candidates.values, k);
  for (size_t i = 0; sparse.indices.size() < k; ++i) {
    const uint32_t key = key_of(candidates.values[i]);
    if (key < cut.key || (key == cut.key && cut.of_key == 0)) continue;
    if (key == cut.key) --cut.of_key;
    push(sparse, candidates.indices[i], candidates.values[i]);
  }
  return sparse;
}

size_t layerwise_count(std::span<const size_t> lengths, double ratio) {
  size_t count = 0;
  for (const size_t length : lengths) count += top_k_count(ratio, length);
  return count;
}

SparseVector layerwise_top_k(std::span<const float> vector, std::span<const size_t> lengths, double ratio) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  SparseVector all = with_room(layerwise_count(lengths, ratio));
  size_t begin = 0;
  for (const size_t length : lengths) {
    CHECK(length <= vector.size() - begin, "the layers are longer than the vector");
    const SparseVector layer = top_k(vector.subspan(begin, length), top_k_count(ratio, length));
    for (size_t i = 0; i < layer.indices.size(); ++i) push(all, narrow(begin) + layer.indices[i], layer.values[i]);
    all.nans += layer.nans;
    begin += length;
  }
  CHECK(begin == vector.size(), "the layers are shorter than the vector");
  return all;
}

SparseVector ms_top_k(std::span<const float> vector, size_t k) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  k = std::min(k, vector.size());
  if (k == 0) return nothing_of(vector);
  const Thresholds thresholds = bisect(vector, k);
  // If more than k are not finite, only these are kept, and only the first ones.
  const size_t kept = count_reaching(vector.data(), vector.size(), thresholds.keep);
  size_t fill = k - std::min(k, kept);
  const Candidates candidates = candidates_of(vector, fill > 0 ? thresholds.band : thresholds.keep);
  SparseVector sparse = with_room(k);
  sparse.nans = count_nans(candidates.values);
  for (size_t i = 0; i < candidates.size() && sparse.indices.size() < k; ++i) {
    const bool keep = !(std::abs(candidates.values[i]) < thresholds.keep);
    if (!keep && fill == 0) continue;
    if (!keep) --fill;
    push(sparse, candidates.indices[i], candidates.values[i]);
  }
  return sparse;
}

}  // namespace trestle
