// Top-k, word by word: what src/compress must give, without anything that makes it fast. Pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace trestle::reference {

// The numbers of the k elements of largest magnitude, ascending. A NaN is the largest; ties go to the lower number.
template <class T>
std::vector<uint32_t> sorted_top_k(const std::vector<T>& vector, size_t k) {
  std::vector<uint32_t> order(vector.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (std::isnan(vector[a]) || std::isnan(vector[b])) return std::isnan(vector[a]) && !std::isnan(vector[b]);
    return std::abs(vector[a]) > std::abs(vector[b]);
  });
  order.resize(std::min(k, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

// In the order of kernels/sparse.h.
inline double sum_of_sixteen(std::array<double, 16> parts) {
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t j = 0; j < width; ++j) parts[j] += parts[j + width];
  }
  return parts[0];
}

// MSTopk: every bisection counts all elements.
template <class T>
std::vector<uint32_t> plain_ms_top_k(const std::vector<T>& vector, size_t k) {
  std::array<double, 16> parts{};
  double most = 0;
  size_t finite = 0;
  for (size_t i = 0; i < vector.size(); ++i) {
    if (!std::isfinite(vector[i])) continue;
    parts[i % 16] += std::abs(vector[i]);
    most = std::max<double>(most, std::abs(vector[i]));
    ++finite;
  }
  const double mean = sum_of_sixteen(parts) / static_cast<double>(finite);
  T keep = std::numeric_limits<T>::infinity();
  T band = 0;
  double low = 0, high = 1;
  const auto reaching = [&](T threshold) {
    return static_cast<size_t>(
        std::count_if(vector.begin(), vector.end(), [=](T value) { return !(std::abs(value) < threshold); }));
  };
  for (int i = 0; i < 25 && finite > 0; ++i) {
    const double ratio = (low + high) / 2;
    const auto threshold = static_cast<T>(mean + ratio * (most - mean));
    const bool under = reaching(threshold) <= k;
    (under ? high : low) = ratio;
    if (under) keep = std::min(keep, threshold);
    if (!under) band = std::max(band, threshold);
  }
  size_t fill = k - std::min(k, reaching(keep));
  std::vector<uint32_t> indices;
  for (size_t i = 0; i < vector.size() && indices.size() < k; ++i) {
    const bool kept = !(std::abs(vector[i]) < keep);
    const bool fills = !kept && fill > 0 && !(std::abs(vector[i]) < band);
    fill -= fills;
    if (kept || fills) indices.push_back(static_cast<uint32_t>(i));
  }
  return indices;
}

}  // namespace trestle::reference
