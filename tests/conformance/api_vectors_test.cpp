// Collectives with blocks of unequal lengths: every kind, type, operator, pattern of counts and of displacements on
// every kind of communicator. Results are compared bit by bit, gaps and guards byte by byte. Ranks are threads; for
// shared memory beside TCP in one dimension they are processes.
//
// As in api_collectives_test.cpp the default is a seeded selection with every pair of values of any two factors.
// TRESTLE_TEST_FULL=1 runs ten times as many cases; the additional ones are random. There is no whole product, because
// there are infinitely many counts and displacements.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "conformance/api_space.h"
#include "conformance/api_vector_call.h"
#include "support/ranks.h"

namespace api {
namespace api_vectors_test {
namespace {

constexpr int kCommunicators = 185;
constexpr int kCallsPerCommunicator = 24;
constexpr int kMostFailedCases = 3;
constexpr size_t kLongest[] = {1, 17, 1009, 40'009};

// These factors follow those of the communicator (Factor).
enum VectorFactor { kKind = kCommunicatorFactors, kElement, kOperator, kPlace, kPattern, kDisplaced, kMost, kAll };

std::vector<int> sizes() {
  std::vector<int> sizes = factor_sizes();
  sizes.resize(kAll);
  sizes[kKind] = static_cast<int>(std::size(kUnevenCollectives));
  sizes[kElement] = trestleNumTypes;
  sizes[kOperator] = trestleNumOps;
  sizes[kPlace] = 2;
  sizes[kPattern] = kCountPatterns;
  sizes[kDisplaced] = kDisplacementPatterns;
  sizes[kMost] = static_cast<int>(std::size(kLongest));
  return sizes;
}

bool makes_sense(const Choice& choice) {
  Choice of_communicator = choice;
  of_communicator.resize(kCommunicatorFactors);
  of_communicator.resize(kFactors);
  if (!is_allowed(of_communicator)) return false;
  const trestleCollective_t collective = kUnevenCollectives[choice[kKind]];
  if (collective != trestleCollReduceScatterV) return choice[kOperator] == 0;
  return choice[kDisplaced] == 0;  // it has no displacements
}

VectorCall vector_call(const Choice& choice, int ranks, uint64_t seed) {
  VectorCall call;
  call.collective = kUnevenCollectives[choice[kKind]];
  call.type = static_cast<trestleDataType_t>(choice[kElement]);
  call.op = static_cast<trestleRedOp_t>(choice[kOperator]);
  call.in_place = choice[kPlace] != 0;
  call.counts = static_cast<Counts>(choice[kPattern]);
  call.displacements = static_cast<Displacements>(choice[kDisplaced]);
  call.most = kLongest[choice[kMost]];
  call.root = static_cast<int>(seed % static_cast<uint64_t>(ranks));
  call.seed = seed;
  call.shared_memory = seed % 7 == 0;
  return call;
}

void run_calls(const ranks::Settings& settings, const std::vector<VectorCall>& calls) {
  ranks::on_ranks(
      settings,
      [&](int rank, trestleComm_t comm) {
        for (const VectorCall& call : calls) {
          run_and_verify(call, rank, settings.ranks, comm);
          if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "at " << call << "; " << settings;
            return;
          }
        }
      },
      60);
}

TEST(ApiVectors, EveryPairOfFactors) {
  const bool full = std::getenv("TRESTLE_TEST_FULL") != nullptr;
  std::vector<int> of_communicators = sizes();
  of_communicators.resize(kCommunicatorFactors);
  Cover communicators(
      of_communicators, [](Choice choice) { return choice.resize(kFactors), is_allowed(choice); }, 31);
  Cover cover(sizes(), makes_sense, 22);
  int failed = 0;
  uint64_t seed = 1000;
  const int tried = full ? 10 * kCommunicators : tried_of(kCommunicators);
  for (int c = 0; c < tried; ++c) {
    Choice fixed = communicators.next({});
    if (full && c >= kCommunicators) {  // all pairs are covered; the others are random
      ranks::Random random{static_cast<uint64_t>(c)};
      do {
        for (size_t f = 0; f < kCommunicatorFactors; ++f)
          fixed[f] = static_cast<int>(random.below(static_cast<uint64_t>(sizes()[f])));
        Choice whole = fixed;
        whole.resize(kFactors);
        if (is_allowed(whole)) break;
      } while (true);
    }
    Choice communicator = fixed;
    communicator.resize(kFactors);
    const ranks::Settings settings = settings_of(communicator);
    std::vector<VectorCall> calls;
    for (int i = 0; i < kCallsPerCommunicator; ++i) {
      ++seed;
      calls.push_back(vector_call(cover.next(fixed), settings.ranks, seed));
    }
    const int before = testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    run_calls(settings, calls);
    failed += testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > before ? 1 : 0;
    ASSERT_LE(failed, kMostFailedCases) << "too much is broken to go on";
  }
  if (tried < kCommunicators) return;
  EXPECT_EQ(cover.missing(0, kAll), 0u) << "the selection does not cover all pairs";
  if (full)
    std::cout << 10 * kCommunicators << " communicators, " << seed - 1000
              << " calls with unequal blocks on all their ranks: ten times the selection, not the product\n";
}

// Every number of ranks, every root.
TEST(ApiVectors, EveryNumberOfRanksAndEveryRoot) {
  uint64_t seed = 50;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const char* transport : {"loopback", "shm", "tcp"}) {
      std::vector<VectorCall> calls;
      for (const trestleCollective_t collective : kUnevenCollectives) {
        for (int root = 0; root < ranks; ++root) {
          ++seed;
          calls.push_back({.collective = collective,
                           .type = static_cast<trestleDataType_t>(seed % trestleNumTypes),
                           .in_place = seed % 2 == 0,
                           .counts = static_cast<Counts>(seed % 4),
                           .displacements = static_cast<Displacements>(seed / 3 % kDisplacementPatterns),
                           .most = 1 + seed * 37 % 3000,
                           .root = root,
                           .seed = seed});
        }
      }
      run_calls({.ranks = ranks, .transport = transport}, calls);
    }
  }
}

// Blocks of many segments.
TEST(ApiVectors, LargeData) {
  const struct {
    ranks::Settings settings;
    size_t most;
  } cases[] = {{{.ranks = 2, .transport = "loopback"}, 1'500'017},
               {{.ranks = 2, .transport = "shm"}, 1'500'017},
               {{.ranks = 3, .transport = "tcp"}, 700'001},
               {{.ranks = 4, .dims = "2x2", .transport = "shm,tcp"}, 300'007},
               {{.ranks = 8, .dims = "4x2", .transport = "shm"}, 100'003},
               {{.ranks = 8, .dims = "2x2x2", .transport = "loopback", .chunks = 16}, 100'003}};
  uint64_t seed = 700;
  for (const auto& c : cases) {
    std::vector<VectorCall> calls;
    for (const trestleCollective_t collective : kUnevenCollectives) {
      for (const Counts counts : {Counts::kRandom, Counts::kOneHasAll}) {
        ++seed;
        calls.push_back({.collective = collective,
                         .type = seed % 2 == 0 ? trestleFloat32 : trestleBfloat16,
                         .in_place = seed % 4 == 0,
                         .counts = counts,
                         .displacements = static_cast<Displacements>(seed % kDisplacementPatterns),
                         .most = c.most,
                         .root = c.settings.ranks - 1,
                         .seed = seed,
                         .shared_memory = seed % 3 == 0});
      }
    }
    run_calls(c.settings, calls);
  }
}

// Several calls at once, in a group and one after the other, without waits in between.
TEST(ApiVectors, ManyAtOnceAndInGroups) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    for (const bool grouped : {false, true}) {
      const ranks::Settings settings{.ranks = 5, .transport = transport};
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        std::vector<std::unique_ptr<VectorExecution>> runs;
        std::vector<VectorCall> calls;
        for (uint64_t i = 0; i < 20; ++i) {
          calls.push_back({.collective = kUnevenCollectives[i % std::size(kUnevenCollectives)],
                           .in_place = i % 3 == 0,
                           .counts = static_cast<Counts>(i % 4),
                           .displacements = static_cast<Displacements>(i / 4 % kDisplacementPatterns),
                           .most = i % 7 == 0 ? size_t{100'000} : size_t{300},
                           .root = static_cast<int>(i % 5),
                           .seed = 900 + i});
          runs.push_back(std::make_unique<VectorExecution>(calls.back(), rank, settings.ranks));
        }
        if (grouped) {
          ASSERT_TRUE(ranks::succeeded(trestleGroupStart()));
        }
        for (const auto& run : runs) ASSERT_TRUE(ranks::succeeded(run->start(comm, nullptr), comm));
        if (grouped) {
          ASSERT_TRUE(ranks::succeeded(trestleGroupEnd(), comm));
        }
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        for (size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i]->verify(), "") << calls[i];
      });
    }
  }
}

// Predictions use the same counts as the calls. That of a v-variant assumes equal blocks.
TEST(ApiVectors, PredictionsAreThere) {
  ranks::on_threads({.ranks = 4, .dims = "2x2", .transport = "tcp"}, [](int, trestleComm_t comm) {
    constexpr trestleCollective_t kAll[] = {trestleCollGather,         trestleCollScatter,   trestleCollAllGatherV,
                                            trestleCollReduceScatterV, trestleCollAllToAllV, trestleCollGatherV,
                                            trestleCollScatterV};
    for (const trestleCollective_t collective : kAll) {
      double few = 0;
      double many = 0;
      ASSERT_TRUE(ranks::succeeded(trestlePredictTime(comm, collective, 1000, trestleFloat32, &few)));
      ASSERT_TRUE(ranks::succeeded(trestlePredictTime(comm, collective, 4'000'000, trestleFloat32, &many)));
      EXPECT_GT(few, 0.0) << collective;
      EXPECT_GT(many, 100 * few) << collective;
    }
    double even = 0;
    double uneven = 0;
    ASSERT_TRUE(ranks::succeeded(trestlePredictTime(comm, trestleCollAllGather, 100'000, trestleFloat32, &even)));
    ASSERT_TRUE(ranks::succeeded(trestlePredictTime(comm, trestleCollAllGatherV, 100'000, trestleFloat32, &uneven)));
    EXPECT_EQ(even, uneven);
  });
}

}  // namespace
}  // namespace api_vectors_test
}  // namespace api
