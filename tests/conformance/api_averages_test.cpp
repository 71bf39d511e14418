// Averages of 8- and 16-bit floats: each contribution is multiplied by 1 / ranks before it is added, in float32. So an
// average overflows only where it is itself too large, wherever it is added. That each contribution has its share once,
// by all algorithms, is in api_collectives_test (buffers/api_values.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "conformance/api_space.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_averages_test {
namespace {

using ranks::succeeded;

constexpr trestleDataType_t kSmall[] = {trestleFloat16, trestleBfloat16, trestleFloat8e4m3, trestleFloat8e5m2};
// Over the board, and by plans of one segment and of many.
constexpr size_t kCounts[] = {1, 50, 5000, 600'000};

std::vector<std::byte> filled(trestleDataType_t type, size_t count, uint64_t bits) {
  std::vector<std::byte> data(count * size_of(type));
  for (size_t i = 0; i < count; ++i) store(type, data.data(), i, bits);
  return data;
}

std::vector<std::byte> average(const std::vector<std::byte>& send, trestleDataType_t type, trestleComm_t comm) {
  std::vector<std::byte> result(send.size());
  EXPECT_TRUE(succeeded(
      trestleAllReduce(send.data(), result.data(), send.size() / size_of(type), type, trestleAvg, comm, nullptr),
      comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  return result;
}

uint64_t largest(trestleDataType_t type) {
  static const std::map<trestleDataType_t, uint64_t> kLargest = {
      {trestleFloat16, 0x7bff}, {trestleBfloat16, 0x7f7f}, {trestleFloat8e4m3, 0x7e}, {trestleFloat8e5m2, 0x7b}};
  return kLargest.at(type);
}

TEST(ApiAverages, OfTheLargestNumbersAreTheLargestNumber) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    ranks::on_threads({.ranks = 2, .transport = transport}, [&](int, trestleComm_t comm) {
      for (const trestleDataType_t type : kSmall) {
        for (const size_t count : kCounts) {
          const std::vector<std::byte> send = filled(type, count, largest(type));
          EXPECT_EQ(average(send, type, comm), send) << name(type) << " " << count << " " << transport;
        }
      }
    });
  }
}

// Partial sums round, but none overflows.
TEST(ApiAverages, OfTheLargestNumbersAreFiniteByAllAlgorithms) {
  for (const char* algorithm : {"ring", "direct", "hd", "rd", "tree", "dbtree", "rabenseifner"}) {
    const ranks::Settings settings{.ranks = 5, .transport = "shm", .algo = algorithm_rules(algorithm, "")};
    ranks::on_threads(settings, [&](int, trestleComm_t comm) {
      for (const trestleDataType_t type : kSmall) {
        const std::vector<std::byte> result = average(filled(type, 5000, largest(type)), type, comm);
        size_t infinite = 0;
        uint64_t farthest = 0;
        for (size_t i = 0; i < 5000; ++i) {
          const uint64_t bits = load(type, result.data(), i);
          if (!std::isfinite(decode(type, bits))) ++infinite;
          farthest = std::max(farthest, distance(type, bits, largest(type)));
        }
        EXPECT_EQ(infinite, 0u) << name(type) << " " << algorithm;
        EXPECT_LE(farthest, 3u) << name(type) << " " << algorithm;
      }
    });
  }
}

// A share that is smaller than the smallest number of the type is not lost, because it is added in float32.
TEST(ApiAverages, OfTheSmallestNumbersAreTheSmallestNumber) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    for (const trestleDataType_t type : kSmall) {
      for (const size_t count : kCounts) {
        const std::vector<std::byte> send = filled(type, count, 1);
        EXPECT_EQ(average(send, type, comm), send) << name(type) << " " << count;
      }
    }
  });
}

}  // namespace
}  // namespace api_averages_test
}  // namespace api
