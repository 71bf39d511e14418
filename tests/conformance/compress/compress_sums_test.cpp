// What else is true of compressed all-reduces: counts, equal bits, numbers that are none, several at once.
// compress_types_test.cpp has every method, type and length.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/compress/compress_oracle.h"

namespace compressed {
namespace {

using ranks::succeeded;

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinite = std::numeric_limits<float>::infinity();

std::vector<Floats> gradients_of(const Case& one, uint64_t step) {
  std::vector<Floats> gradients;
  for (int rank = 0; rank < one.ranks; ++rank) gradients.push_back(gradient_of(rank, step, one.count));
  return gradients;
}

Floats sum_over_ranks(Floats values, trestleComm_t comm) {
  EXPECT_TRUE(succeeded(
      trestleAllReduce(values.data(), values.data(), values.size(), trestleFloat32, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  return values;
}

std::vector<size_t> layers_of(size_t count) {
  return {count / 3, 0, count - count / 3 - count / 2, count / 2};
}

TEST(CompressedSums, TakeThatManyElements) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    for (const size_t count : {size_t{1}, size_t{3}, size_t{49}, size_t{1000}}) {
      Floats gradient(count, 1), residual(count), result(count);
      for (size_t k = 1; k <= count; k += 1 + k / 3) {
        trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
        config.method = trestleTopKStar;
        config.collective = trestleTopKRing;
        config.elements = k;
        trestleTopK_t topk = nullptr;
        ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, count, &config), comm));
        residual.assign(count, 0);
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
        EXPECT_EQ(stats_of(topk).elements, k);
        EXPECT_EQ(std::count(result.begin(), result.end(), 1.0f), static_cast<ptrdiff_t>(k));
        EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
      }
    }
  });
}

// Sums that round: all ranks have the same bits.
TEST(CompressedSums, HaveTheSameBitsOnAllRanks) {
  constexpr size_t kCount = 3000;
  constexpr int kRanks = 4;
  ranks::on_threads({.ranks = kRanks, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const Way& way : kWays) {
      Case one{kRanks, kCount, 0.1, way.method, way.collective};
      if (way.method == trestleTopKLayerwise) one.layers = layers_of(kCount);
      trestleTopK_t topk = make(comm, one);
      Floats gradient(kCount), residual(kCount), result(kCount), all(kCount * kRanks);
      ranks::Random random{static_cast<uint64_t>(rank) + 1};
      for (int step = 0; step < 5; ++step) {
        for (float& value : gradient) value = static_cast<float>(random.next() >> 40) * 1e-7f - 0.8f;
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
        ASSERT_TRUE(
            succeeded(trestleAllGather(result.data(), all.data(), kCount, trestleFloat32, comm, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        for (size_t r = 0; r < kRanks; ++r)
          ASSERT_EQ(std::memcmp(&all[r * kCount], result.data(), kCount * sizeof(float)), 0) << "rank " << r;
      }
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

// ---- what is no number

// The NaN of rank 1 travels when it names the elements, once. Until then it stays in its residual.
TEST(CompressedSums, SendANanAndCountIt) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    Case one{2, 10, 0.1, trestleTopKStar, trestleTopKRing};
    one.steps = 1;  // so that rank 0 is first
    trestleTopK_t topk = make(comm, one);
    Floats gradient(10, 1), residual(10), result(10);
    gradient[0] = 5;
    if (rank == 1) gradient[7] = kNan;
    ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
    EXPECT_EQ(result[0], 5);
    EXPECT_EQ(std::isnan(residual[7]), rank == 1);
    EXPECT_EQ(stats_of(topk).lastNans, rank == 1 ? 1u : 0u);
    gradient[7] = 1;
    ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
    EXPECT_EQ(stats_of(topk).root, 1);
    EXPECT_TRUE(std::isnan(result[7]));
    EXPECT_EQ(residual[7], 0);
    EXPECT_EQ(stats_of(topk).lastNans, 0u) << "of the gradient";
    EXPECT_EQ(stats_of(topk).nans, rank == 1 ? 1u : 0u);
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

TEST(CompressedSums, OfNansAndInfinitiesEnd) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const Way& way : kWays) {
      Case one{3, 2000, 0.01, way.method, way.collective};
      if (way.method == trestleTopKLayerwise) one.layers = layers_of(one.count);
      trestleTopK_t topk = make(comm, one);
      Floats residual(one.count), result(one.count);
      uint64_t nans = 0;
      for (int step = 0; step < 7; ++step) {
        Floats gradient = gradient_of(rank, 1, one.count);
        if (step == 1) std::fill(gradient.begin(), gradient.end(), kNan);
        if (step == 2) std::fill(gradient.begin(), gradient.end(), kInfinite);
        if (step == 3) std::fill(gradient.begin(), gradient.end(), -kInfinite);
        if (step == 4 && rank == 2) gradient[1] = gradient[1999] = -kNan;
        for (const float value : gradient) nans += std::isnan(value);
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
        EXPECT_EQ(stats_of(topk).nans, nans);
      }
      EXPECT_EQ(stats_of(topk).steps, 7u);
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

TEST(CompressedSums, OfSeveralAtOnceOnACommunicatorInOneOrder) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    const std::vector<Case> cases = {{3, 100, 0.1}, {3, 333, 0.5, trestleTopKExact}, {3, 7, 1, trestleTopKVar}};
    std::vector<trestleTopK_t> topks;
    std::vector<Oracle> oracles;
    std::vector<Floats> residuals;
    for (const Case& one : cases) {
      topks.push_back(make(comm, one));
      oracles.emplace_back(one);
      residuals.emplace_back(one.count);
    }
    for (uint64_t step = 1; step <= 10; ++step) {
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::vector<Floats> gradients = gradients_of(cases[i], step);
        Floats result = gradients[static_cast<size_t>(rank)];
        oracles[i].step(gradients);
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(result.data(), residuals[i].data(), result.data(), topks[i]), comm));
        ASSERT_EQ(difference(result, oracles[i].result()), "");
        ASSERT_EQ(difference(residuals[i], oracles[i].residual(rank)), "");
        (void)sum_over_ranks(Floats(5, 1), comm);  // beside other collectives
      }
    }
    for (const trestleTopK_t topk : topks) EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

}  // namespace
}  // namespace compressed
