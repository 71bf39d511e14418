#include "perf/driver/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

namespace trestle::perf {
namespace {

std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Returns the error message, or "".
std::string read_matrix(Traffic& traffic, const std::string& path, double scale) {
  std::ifstream file(path);
  if (!file) return "the traffic matrix '" + path + "' cannot be read";
  std::string word;
  while (file >> word) {
    const auto bytes = parse_number(word);
    if (!bytes || *bytes < 0 || *bytes * scale >= 9.0e15) {
      return "the traffic matrix '" + path + "' has '" + word + "': every element is a number of bytes";
    }
    traffic.matrix.push_back(static_cast<size_t>(*bytes * scale));
  }
  traffic.ranks = static_cast<int>(std::lround(std::sqrt(static_cast<double>(traffic.matrix.size()))));
  if (!traffic.matrix.empty() &&
      static_cast<size_t>(traffic.ranks) * static_cast<size_t>(traffic.ranks) == traffic.matrix.size())
    return "";
  return "the traffic matrix '" + path + "' has " + std::to_string(traffic.matrix.size()) +
         " elements: a row and a column per rank";
}

size_t sum_over(int nranks, auto&& elements) {
  size_t sum = 0;
  for (int rank = 0; rank < nranks; ++rank) sum += elements(rank);
  return sum;
}

}  // namespace

Traffic read_traffic(const std::string& spread, const std::string& matrix_file, const std::string& scale) {
  Traffic traffic;
  const auto share = spread.empty() ? std::optional<double>(1) : parse_number(spread);
  const auto factor = scale.empty() ? std::optional<double>(1) : parse_number(scale);
  if (!share || *share < 0 || *share > 1) {
    traffic.problem = "NCCL_TESTS_ALLTOALLV_SPREAD is a number from 0 to 1, not '" + spread + "'";
  } else if (!factor || *factor <= 0) {
    traffic.problem = "NCCL_TESTS_ALLTOALLV_MATRIX_SCALE is a number above 0, not '" + scale + "'";
  } else {
    traffic.spread = *share;
    if (!matrix_file.empty()) traffic.problem = read_matrix(traffic, matrix_file, *factor);
  }
  return traffic;
}

size_t block_elements(const Traffic& traffic, int from, int to, int nranks, size_t count, size_t element_bytes) {
  if (!traffic.matrix.empty()) {
    return traffic.matrix[static_cast<size_t>(from) * static_cast<size_t>(nranks) + static_cast<size_t>(to)] /
           element_bytes;
  }
  const double n = nranks, distance = (to - from + nranks) % nranks;
  const double by_distance = nranks == 1 ? 1 : distance / (n * (n - 1) / 2);
  const double share = (1 - traffic.spread) / n + traffic.spread * by_distance;
  const size_t step = 16 / element_bytes;
  return static_cast<size_t>(static_cast<double>(count) * n * share) / step * step;
}

size_t most_elements(const Traffic& traffic, int nranks, size_t count, size_t element_bytes) {
  size_t most = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    const auto sent = [&](int peer) { return block_elements(traffic, rank, peer, nranks, count, element_bytes); };
    const auto received = [&](int peer) { return block_elements(traffic, peer, rank, nranks, count, element_bytes); };
    most = std::max({most, sum_over(nranks, sent), sum_over(nranks, received)});
    if (traffic.matrix.empty()) break;  // all ranks are equal
  }
  return most;
}

std::vector<std::string> traffic_summary(const Traffic& traffic, int nranks, size_t count, size_t element_bytes) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < nranks; ++rank) {
    const auto sent = [&](int peer) { return block_elements(traffic, rank, peer, nranks, count, element_bytes); };
    const auto received = [&](int peer) { return block_elements(traffic, peer, rank, nranks, count, element_bytes); };
    lines.push_back("traffic of rank " + std::to_string(rank) + ": sends " +
                    std::to_string(sum_over(nranks, sent) * element_bytes) + " bytes, receives " +
                    std::to_string(sum_over(nranks, received) * element_bytes));
  }
  return lines;
}

}  // namespace trestle::perf
