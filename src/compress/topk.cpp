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

template <class T>
constexpr T kInfinite = std::numeric_limits<T>::infinity();

// The bits of a magnitude, read as an integer, order like the magnitude. That integer is its key.
template <class T>
struct Magnitude;
template <>
struct Magnitude<float> {
  using Key = uint32_t;
  static constexpr int kBucketShift = 20;  // of the leading bits: exponent and three of the mantissa
};
template <>
struct Magnitude<double> {
  using Key = uint64_t;
  static constexpr int kBucketShift = 52;  // the exponent
};
template <class T>
using KeyOf = typename Magnitude<T>::Key;
constexpr size_t kBuckets = 2048;  // for float and for double

template <class T>
constexpr KeyOf<T> kInfinity = std::bit_cast<KeyOf<T>>(kInfinite<T>);

uint32_t narrow(size_t index) {
  return static_cast<uint32_t>(index);
}

// All NaNs are one key, so that the lower index wins among them.
template <class T>
KeyOf<T> key_of(T value) {
  constexpr KeyOf<T> kWithoutSign = ~KeyOf<T>{0} >> 1;
  return std::min<KeyOf<T>>(std::bit_cast<KeyOf<T>>(value) & kWithoutSign, kInfinity<T> + 1);
}

// The least magnitude with at least this key. NaNs reach every threshold.
template <class T>
T threshold_of(KeyOf<T> key) {
  return std::bit_cast<T>(std::min(key, kInfinity<T>));
}

// The elements that reach a threshold, in the order of indices.
template <class T>
struct Candidates {
  std::vector<uint32_t> indices;
  std::vector<T> values;
  size_t size() const { return indices.size(); }
};

// expected: about how many there are.
template <class T>
Candidates<T> candidates_of(std::span<const T> vector, T threshold, size_t expected = 0) {
  constexpr size_t kBlock = 2048;  // so that what is selected fits in the first-level cache
  std::array<uint32_t, kBlock + kSelectSlack> indices;
  std::array<T, kBlock + kSelectSlack> values;
  Candidates<T> candidates;
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

// A threshold that probably at least k elements reach, and not many more. A sample names it, with a margin of four
// standard deviations.
template <class T>
T likely_threshold(std::span<const T> vector, size_t k) {
  constexpr size_t kLeastSample = 1024, kMostSample = 4096, kElementsPerSample = 64;
  const size_t sample = std::clamp(vector.size() / kElementsPerSample, kLeastSample, kMostSample);
  if (vector.size() < 4 * sample) return 0;
  const double expected = static_cast<double>(sample) * static_cast<double>(k) / static_cast<double>(vector.size());
  const double wanted = std::ceil(expected + 4 * std::sqrt(expected) + 4);
  if (wanted >= static_cast<double>(sample)) return 0;
  std::vector<KeyOf<T>> keys(sample);
  const size_t stride = vector.size() / sample;
  for (size_t s = 0; s < sample; ++s) keys[s] = key_of(vector[s * stride + stride / 2]);
  const auto cut = keys.begin() + static_cast<ptrdiff_t>(wanted) - 1;
  std::nth_element(keys.begin(), cut, keys.end(), std::greater<>());
  return threshold_of<T>(*cut);
}

// The keys that have the leading bits of the k-th largest one. A histogram of leading bits finds them.
struct Bucket {
  uint32_t digit = 0;  // the leading bits
  size_t rest = 0;     // how many of the k are in it
  size_t size = 0;
};

template <class T>
size_t bucket_of(T value) {
  return key_of(value) >> Magnitude<T>::kBucketShift;
}

// k: 1 to the number of values.
template <class T>
Bucket find_bucket(std::span<const T> values, size_t k) {
  std::array<std::array<size_t, kBuckets>, 2> counts{};  // two, so that an add need not wait for the one before it
  for (size_t i = 0; i < values.size(); ++i) ++counts[i % 2][bucket_of(values[i])];
  const auto size = [&](uint32_t digit) { return counts[0][digit] + counts[1][digit]; };
  Bucket bucket{kBuckets - 1, k, 0};
  for (; bucket.rest > size(bucket.digit); --bucket.digit) bucket.rest -= size(bucket.digit);
  bucket.size = size(bucket.digit);
  return bucket;
}

// A threshold that at least k elements reach. Reads the whole vector, for vectors whose sample has misled.
template <class T>
T certain_threshold(std::span<const T> vector, size_t k) {
  return threshold_of<T>(KeyOf<T>{find_bucket(vector, k).digit} << Magnitude<T>::kBucketShift);
}

// At least the k largest elements.
template <class T>
Candidates<T> largest_candidates(std::span<const T> vector, size_t k) {
  Candidates<T> candidates = candidates_of(vector, likely_threshold(vector, k), k + k / 4);
  return candidates.size() >= k ? candidates : candidates_of(vector, certain_threshold(vector, k));
}

// How many elements with a certain key are taken besides all with a larger one.
template <class T>
struct Cut {
  KeyOf<T> key = 0;
  size_t of_key = 0;
};

// The k-th largest key. k: 1 to the number of values.
template <class T>
Cut<T> find_cut(std::span<const T> values, size_t k) {
  constexpr size_t kFew = 2048;  // a histogram would take longer
  std::vector<KeyOf<T>> keys;
  size_t rest = k;
  if (values.size() <= kFew) {
    keys.resize(values.size());
    std::transform(values.begin(), values.end(), keys.begin(), key_of<T>);
  } else {
    const Bucket bucket = find_bucket(values, k);
    rest = bucket.rest;
    keys.reserve(bucket.size);
    for (const T value : values) {
      if (bucket_of(value) == bucket.digit) keys.push_back(key_of(value));
    }
  }
  const auto cut = keys.begin() + static_cast<ptrdiff_t>(rest) - 1;
  std::nth_element(keys.begin(), cut, keys.end(), std::greater<>());
  const auto larger = std::count_if(keys.begin(), cut, [&](KeyOf<T> key) { return key > *cut; });
  return {*cut, rest - static_cast<size_t>(larger)};
}

template <class T>
size_t count_nans(const std::vector<T>& values) {
  return static_cast<size_t>(std::count_if(values.begin(), values.end(), [](T v) { return std::isnan(v); }));
}

template <class T>
void push(SparseVectorOf<T>& sparse, uint32_t index, T value) {
  sparse.indices.push_back(index);
  sparse.values.push_back(value);
}

template <class T>
SparseVectorOf<T> with_room(size_t k) {
  SparseVectorOf<T> sparse;
  sparse.indices.reserve(k);
  sparse.values.reserve(k);
  return sparse;
}

// Selects nothing, and counts the NaNs: they reach infinity, too.
template <class T>
SparseVectorOf<T> nothing_of(std::span<const T> vector) {
  SparseVectorOf<T> sparse;
  sparse.nans = count_nans(candidates_of(vector, kInfinite<T>).values);
  return sparse;
}

// Magnitudes from `keep` on are kept, those from `band` on fill up.
template <class T>
struct Thresholds {
  T keep = kInfinite<T>;
  T band = 0;
};

// The elements from `band` on, below `keep`.
template <class T>
std::vector<T> between(std::span<const T> values, const Thresholds<T>& thresholds) {
  std::vector<T> rest = candidates_of(values, thresholds.band).values;
  std::erase_if(rest, [&](T value) { return !(std::abs(value) < thresholds.keep); });
  return rest;
}

// Later thresholds lie between the present two. So the elements above both are counted once, those below both are
// dropped, and only the others are read again. Elements that are not finite reach every threshold.
template <class T>
Thresholds<T> bisect(std::span<const T> vector, size_t k) {
  constexpr int kBisections = 25;
  Thresholds<T> thresholds;
  const MagnitudeSummary<T> summary = summarize_magnitudes(vector.data(), vector.size());
  if (summary.finite == 0) return thresholds;
  // The sum of very large doubles is infinite. Then the largest alone is the threshold.
  const double mean =
      std::isfinite(summary.sum) ? summary.sum / static_cast<double>(summary.finite) : double{summary.largest};
  const double range = summary.largest - mean;  // below 0 only by rounding, where all magnitudes are equal
  std::vector<T> memory;
  std::span<const T> rest = vector;
  size_t above = 0;  // elements outside of `rest` that reach every later threshold
  size_t reach_keep = vector.size() - summary.finite;
  size_t reach_band = vector.size();
  double low = 0;
  double high = 1;
  for (int i = 0; i < kBisections; ++i) {
    const double ratio = (low + high) / 2;
    const auto threshold = static_cast<T>(mean + ratio * range);
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
    std::vector<T> fewer = between(rest, thresholds);
    memory.swap(fewer);
    rest = memory;
    above = reach_keep;
  }
  return thresholds;
}

template <class T>
SparseVectorOf<T> largest(std::span<const T> vector, size_t k) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  k = std::min(k, vector.size());
  if (k == 0) return nothing_of(vector);
  const Candidates<T> candidates = largest_candidates(vector, k);
  SparseVectorOf<T> sparse = with_room<T>(k);
  sparse.nans = count_nans(candidates.values);
  Cut<T> cut = find_cut<T>(candidates.values, k);
  for (size_t i = 0; sparse.indices.size() < k; ++i) {
    const KeyOf<T> key = key_of(candidates.values[i]);
    if (key < cut.key || (key == cut.key && cut.of_key == 0)) continue;
    if (key == cut.key) --cut.of_key;
    push(sparse, candidates.indices[i], candidates.values[i]);
  }
  return sparse;
}

template <class T>
SparseVectorOf<T> largest_of_layers(std::span<const T> vector, std::span<const size_t> lengths, double ratio) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  SparseVectorOf<T> all = with_room<T>(layerwise_count(lengths, ratio));
  size_t begin = 0;
  for (const size_t length : lengths) {
    CHECK(length <= vector.size() - begin, "the layers are longer than the vector");
    const SparseVectorOf<T> layer = largest(vector.subspan(begin, length), top_k_count(ratio, length));
    for (size_t i = 0; i < layer.indices.size(); ++i) push(all, narrow(begin) + layer.indices[i], layer.values[i]);
    all.nans += layer.nans;
    begin += length;
  }
  CHECK(begin == vector.size(), "the layers are shorter than the vector");
  return all;
}

template <class T>
SparseVectorOf<T> largest_by_thresholds(std::span<const T> vector, size_t k) {
  CHECK(vector.size() <= size_t{1} << 32, "indices have 32 bits");
  k = std::min(k, vector.size());
  if (k == 0) return nothing_of(vector);
  const Thresholds<T> thresholds = bisect(vector, k);
  // If more than k elements are not finite, the first k of these are kept and nothing else.
  const size_t kept = count_reaching(vector.data(), vector.size(), thresholds.keep);
  size_t fill = k - std::min(k, kept);
  const Candidates<T> candidates = candidates_of(vector, fill > 0 ? thresholds.band : thresholds.keep);
  SparseVectorOf<T> sparse = with_room<T>(k);
  sparse.nans = count_nans(candidates.values);
  for (size_t i = 0; i < candidates.size() && sparse.indices.size() < k; ++i) {
    const bool keep = !(std::abs(candidates.values[i]) < thresholds.keep);
    if (!keep && fill == 0) continue;
    if (!keep) --fill;
    push(sparse, candidates.indices[i], candidates.values[i]);
  }
  return sparse;
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

double square_norm(std::span<const double> values) {
  return square_sum(values.data(), values.size());
}

double compression_gain(double sent, double gradient) {
  return gradient == 0 ? 1 : sent / gradient;
}

SparseVector top_k(std::span<const float> vector, size_t k) {
  return largest(vector, k);
}

SparseVectorOf<double> top_k(std::span<const double> vector, size_t k) {
  return largest(vector, k);
}

size_t layerwise_count(std::span<const size_t> lengths, double ratio) {
  size_t count = 0;
  for (const size_t length : lengths) count += top_k_count(ratio, length);
  return count;
}

SparseVector layerwise_top_k(std::span<const float> vector, std::span<const size_t> lengths, double ratio) {
  return largest_of_layers(vector, lengths, ratio);
}

SparseVectorOf<double> layerwise_top_k(std::span<const double> vector, std::span<const size_t> lengths, double ratio) {
  return largest_of_layers(vector, lengths, ratio);
}

SparseVector ms_top_k(std::span<const float> vector, size_t k) {
  return largest_by_thresholds(vector, k);
}

SparseVectorOf<double> ms_top_k(std::span<const double> vector, size_t k) {
  return largest_by_thresholds(vector, k);
}

}  // namespace trestle
