// Which collective and which ratio a compressed all-reduce takes, and that all ranks take the same.
#include <cmath>
#include <cstring>

#include "conformance/compress/compress_oracle.h"

namespace compressed {
namespace {

using ranks::refused;
using ranks::succeeded;

trestleTopK_t make_with(trestleComm_t comm, size_t count, const trestleTopKConfig_t& config) {
  trestleTopK_t topk = nullptr;
  EXPECT_TRUE(succeeded(trestleTopKCreate(&topk, comm, count, &config), comm));
  return topk;
}

// Every rank's choice and costs, to the bit.
void expect_same_on_all(trestleTopK_t topk, trestleComm_t comm, int ranks) {
  const trestleTopKStats_t stats = stats_of(topk);
  const double mine[] = {static_cast<double>(stats.method),
                         static_cast<double>(stats.collective),
                         static_cast<double>(stats.elements),
                         static_cast<double>(stats.measures),
                         static_cast<double>(stats.changes),
                         static_cast<double>(stats.gainChanges),
                         static_cast<double>(stats.linkChanges),
                         stats.ratio,
                         stats.meanGain,
                         stats.startup,
                         stats.perByte};
  constexpr size_t kNumbers = std::size(mine);
  std::vector<double> all(kNumbers * static_cast<size_t>(ranks));
  ASSERT_TRUE(succeeded(trestleAllGather(mine, all.data(), kNumbers, trestleFloat64, comm, nullptr), comm));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  for (size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(std::memcmp(&all[i], &mine[i % kNumbers], sizeof(double)), 0) << "number " << i % kNumbers;
}

// A gradient whose magnitudes are spread: the steeper, the more of it is in few elements.
Floats spread_gradient(int rank, uint64_t step, size_t count, double steepness) {
  ranks::Random random{(static_cast<uint64_t>(rank) + 1) * 104729 + step * 7919};
  Floats gradient(count);
  for (float& value : gradient)
    value = static_cast<float>(std::exp(-steepness * static_cast<double>(random.below(1000)) / 100));
  return gradient;
}

void make_steps(trestleTopK_t topk, trestleComm_t comm, int rank, Floats& residual, int steps, double steepness) {
  for (int step = 0; step < steps; ++step) {
    Floats gradient = spread_gradient(rank, static_cast<uint64_t>(step), residual.size(), steepness);
    ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk), comm));
  }
}

// Seven ranks, 100 of 1000 elements, 1 us per byte. With the startup grow the ring's, then the tree's disadvantages.
TEST(CompressedChoice, IsTheOneThatTheRulesName) {
  ranks::on_threads({.ranks = 7}, [](int rank, trestleComm_t comm) {
    struct Row {
      double startup;
      int method, collective, chosen_method;
    };
    const Row rows[] = {{1e-4, trestleTopKAuto, trestleTopKRing, trestleTopKStar},
                        {2.5e-4, trestleTopKAuto, trestleTopKTree, trestleTopKStar},
                        {1e-3, trestleTopKAuto, trestleTopKAllGather, trestleTopKExact},
                        {1e-4, trestleTopKStar, trestleTopKRing, trestleTopKStar},
                        {1e-3, trestleTopKStar, trestleTopKTree, trestleTopKStar},
                        {1e-3, trestleTopKVar, trestleTopKTree, trestleTopKVar},
                        {1e-4, trestleTopKExact, trestleTopKAllGather, trestleTopKExact}};
    for (const Row& row : rows) {
      trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
      config.method = row.method;
      config.ratio = 0.1;
      config.startup = row.startup;
      config.perByte = 1e-6;
      trestleTopK_t topk = make_with(comm, 1000, config);
      const trestleTopKStats_t stats = stats_of(topk);
      EXPECT_EQ(stats.method, row.chosen_method);
      EXPECT_EQ(stats.collective, row.collective) << row.startup << ", " << row.method;
      EXPECT_EQ(stats.elements, 100u);
      EXPECT_EQ(stats.startup, row.startup);
      EXPECT_EQ(stats.perByte, 1e-6);
      Floats residual(1000);
      make_steps(topk, comm, rank, residual, 25, 1);
      EXPECT_EQ(stats_of(topk).collective, row.collective) << "costs that were given are kept";
      EXPECT_EQ(stats_of(topk).changes, 0u);
      expect_same_on_all(topk, comm, 7);
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

TEST(CompressedChoice, MeasuresTheLinksWhenItNeedsThem) {
  for (const int ranks : {1, 2, 5}) {
    ranks::on_threads({.ranks = ranks, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
      config.ratio = 0.05;
      config.method = trestleTopKExact;
      trestleTopK_t topk = make_with(comm, 4000, config);
      EXPECT_EQ(stats_of(topk).startup + stats_of(topk).perByte, 0) << "nothing is to be chosen";
      EXPECT_TRUE(succeeded(trestleTopKFit(topk), comm));
      EXPECT_EQ(stats_of(topk).startup + stats_of(topk).perByte > 0, ranks > 1);
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));

      config.method = trestleTopKAuto;
      topk = make_with(comm, 4000, config);
      EXPECT_EQ(stats_of(topk).startup + stats_of(topk).perByte > 0, ranks > 1);
      expect_same_on_all(topk, comm, ranks);
      Floats residual(4000);
      for (int round = 0; round < 5; ++round) {
        make_steps(topk, comm, rank, residual, 13, 1);
        expect_same_on_all(topk, comm, ranks);
      }
      EXPECT_EQ(stats_of(topk).steps, 65u);
      EXPECT_GT(stats_of(topk).exchangeNs, 0u);
      EXPECT_GT(stats_of(topk).compressNs, 0u);
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    });
  }
}

// Costs that were given do not count any more once they were measured.
TEST(CompressedChoice, AFitReplacesGivenCosts) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
    config.ratio = 0.5;
    config.startup = 3600;
    config.perByte = 0;
    trestleTopK_t topk = make_with(comm, 100, config);
    EXPECT_EQ(stats_of(topk).collective, trestleTopKAllGather);
    ASSERT_TRUE(succeeded(trestleTopKFit(topk), comm));
    EXPECT_LT(stats_of(topk).startup, 3600);
    expect_same_on_all(topk, comm, 2);
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

// The default config: ten steps with 0.1, then the ratio of the objectives, by samples that are the same on all ranks.
TEST(CompressedChoice, ChoosesARatio) {
  for (const int rule : {trestleTopKWeighted, trestleTopKKnee}) {
    for (const int method : {trestleTopKAuto, trestleTopKVar, trestleTopKMultiSampling}) {
      ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
        trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
        config.method = method;
        config.ratioRule = rule;
        config.startup = 1e-6;
        config.perByte = 1e-8;
        trestleTopK_t topk = make_with(comm, 20'000, config);
        EXPECT_EQ(stats_of(topk).ratio, 0.1);
        EXPECT_EQ(stats_of(topk).measures, 1);
        Floats residual(20'000);
        make_steps(topk, comm, rank, residual, 10, 3);
        EXPECT_EQ(stats_of(topk).ratio, 0.1);
        make_steps(topk, comm, rank, residual, 1, 3);
        const trestleTopKStats_t stats = stats_of(topk);
        EXPECT_EQ(stats.measures, 0);
        EXPECT_LT(stats.ratio, 0.1);
        EXPECT_GE(stats.ratio, 0.001 * (1 - 1e-12));
        EXPECT_EQ(stats.elements, static_cast<uint64_t>(std::ceil(stats.ratio * 20'000)));
        EXPECT_EQ(stats.changes, 1u);
        EXPECT_GT(stats.meanGain, 0);
        EXPECT_LE(stats.meanGain, 1);
        expect_same_on_all(topk, comm, 3);
        EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
      });
    }
  }
}

TEST(CompressedChoice, SeesThatTheGainHasChanged) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
    config.method = trestleTopKExact;
    config.ratio = 0.05;
    config.reviewSteps = 5;
    trestleTopK_t topk = make_with(comm, 2000, config);
    Floats residual(2000);
    const auto steps = [&](int count, double steepness) {
      for (int step = 0; step < count; ++step) {
        std::fill(residual.begin(), residual.end(), 0.0f);  // so that the gain is the gradient's alone
        make_steps(topk, comm, rank, residual, 1, steepness);
      }
    };
    steps(26, 4);
    EXPECT_EQ(stats_of(topk).gainChanges, 0u);
    const double steep = stats_of(topk).meanGain;
    steps(10, 0.1);
    EXPECT_EQ(stats_of(topk).gainChanges, 1u);
    EXPECT_LT(stats_of(topk).meanGain, 0.9 * steep);
    steps(20, 0.1);
    EXPECT_EQ(stats_of(topk).gainChanges, 1u);
    EXPECT_EQ(stats_of(topk).changes, 0u) << "the ratio was given";
    expect_same_on_all(topk, comm, 2);
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

TEST(CompressedChoice, TakesARatioThatIsSet) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
    config.startup = 1e-5;
    config.perByte = 1e-9;
    trestleTopK_t topk = make_with(comm, 1000, config);
    EXPECT_EQ(stats_of(topk).measures, 1);
    Floats residual(1000);
    make_steps(topk, comm, rank, residual, 3, 1);
    // Also more than there was memory for before.
    for (const double ratio : {1.0, 0.001, 0.5, 1e-9}) {
      ASSERT_TRUE(succeeded(trestleTopKSetRatio(topk, ratio), comm));
      EXPECT_EQ(stats_of(topk).ratio, ratio);
      EXPECT_EQ(stats_of(topk).elements, std::max<uint64_t>(1, static_cast<uint64_t>(std::lround(1000 * ratio))));
      EXPECT_EQ(stats_of(topk).measures, 0);
      make_steps(topk, comm, rank, residual, 30, 1);
      EXPECT_EQ(stats_of(topk).ratio, ratio);
    }
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

TEST(CompressedChoice, NamesARatioForSamplesOfTheProgram) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
    config.ratio = 0.01;
    config.startup = 1e-3;
    config.perByte = 1e-9;
    trestleTopK_t topk = make_with(comm, 25'000'000, config);
    const trestleTopKSample_t samples[] = {{0.1, 0.9, 5e-3}, {0.001, 0.1, 1e-3}, {0.011, 0.5, 3e-3}};
    double weighted = 0, fast = 0, ratio = 0;
    ASSERT_TRUE(succeeded(trestleTopKChooseRatio(topk, samples, 3, &weighted)));
    EXPECT_GT(weighted, 0.001);
    EXPECT_LT(weighted, 0.1);
    EXPECT_EQ(stats_of(topk).ratio, 0.01) << "nothing was changed";
    ASSERT_TRUE(succeeded(trestleTopKChooseRatio(topk, samples, 1, &ratio)));
    EXPECT_EQ(ratio, 0.1) << "there is one";
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    config.gainWeight = 0;
    topk = make_with(comm, 25'000'000, config);
    ASSERT_TRUE(succeeded(trestleTopKChooseRatio(topk, samples, 3, &fast)));
    EXPECT_NEAR(fast, 0.001, 1e-9);
    trestleTopKSample_t wrong = samples[0];
    wrong.gain = 0;
    EXPECT_TRUE(refused(trestleTopKChooseRatio(topk, &wrong, 1, &ratio), trestleInvalidArgument,
                        {"TopKChooseRatio", "gain is positive"}));
    EXPECT_TRUE(refused(trestleTopKChooseRatio(topk, samples, 0, &ratio), trestleInvalidArgument, {"one sample"}));
    EXPECT_TRUE(refused(trestleTopKChooseRatio(topk, nullptr, 1, &ratio), trestleInvalidArgument, {"one sample"}));
    EXPECT_TRUE(refused(trestleTopKChooseRatio(topk, samples, 1, nullptr), trestleInvalidArgument, {"ratio is NULL"}));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

}  // namespace
}  // namespace compressed
