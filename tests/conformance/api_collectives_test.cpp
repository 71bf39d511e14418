// Every collective, type, operator, size and buffer placement on every kind of communicator. Results are compared bit
// by bit. Ranks are threads; for shared memory beside TCP in one dimension they are processes. tests/local has more
// tests with processes.
//
// The default is a seeded selection in which every pair of values of any two factors occurs. TRESTLE_TEST_FULL=1 in the
// environment of this program runs the whole product, TRESTLE_TEST_FULL=3/8 the third of eight parts of it. The product
// covers the collectives with equal blocks. The v-variants have infinitely many counts and displacements, so
// api_vectors_test.cpp then runs ten times its selection.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "conformance/api_call.h"
#include "conformance/api_space.h"
#include "conformance/buffers/api_images.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_collectives_test {
namespace {

constexpr int kCommunicators = 185;
constexpr int kCallsPerCommunicator = 28;
constexpr int kMostFailedCases = 3;

void run_calls(const ranks::Settings& settings, const std::vector<Call>& calls, int watchdog_s = 60) {
  ranks::on_ranks(
      settings,
      [&](int rank, trestleComm_t comm) {
        for (const Call& call : calls) {
          run_and_verify(call, rank, settings.ranks, comm);
          if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "at " << call << "; " << settings;
            return;
          }
        }
      },
      watchdog_s);
}

TEST(ApiCollectives, EveryPairOfFactors) {
  std::vector<int> of_communicators = factor_sizes();
  of_communicators.resize(kCommunicatorFactors);
  Cover communicators(
      of_communicators, [](Choice choice) { return choice.resize(kFactors), is_allowed(choice); }, 11);
  Cover cover(factor_sizes(), is_allowed, 12);
  int failed = 0;
  uint64_t seed = 1000;
  const int communicators_tried = tried_of(kCommunicators);
  for (int c = 0; c < communicators_tried; ++c) {
    const Choice fixed = communicators.next({});
    std::vector<Call> calls;
    Choice choice;
    for (int i = 0; i < kCallsPerCommunicator; ++i) {
      choice = cover.next(fixed);
      calls.push_back(call_of(choice, ++seed));
    }
    const int before = testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    run_calls(settings_of(choice), calls);
    failed += testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > before ? 1 : 0;
    ASSERT_LE(failed, kMostFailedCases) << "too much is broken to go on";
  }
  if (communicators_tried < kCommunicators) return;
  EXPECT_EQ(cover.missing(0, kFactors), 0u) << "the selection does not cover all pairs";
}

// Which part of the product's communicators to run, from TRESTLE_TEST_FULL.
struct Part {
  size_t number = 1;
  size_t parts = 1;
};

Part part_of_product(const std::string& text) {
  Part part;
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return part;
  part.number = std::strtoul(text.c_str(), nullptr, 10);
  part.parts = std::strtoul(text.c_str() + slash + 1, nullptr, 10);
  EXPECT_TRUE(part.number >= 1 && part.number <= part.parts)
      << "TRESTLE_TEST_FULL=" << text << " is no part such as 3/8";
  return part;
}

// Computes the images of the calls once for all communicators with this number of ranks. Their processes inherit them.
void foresee(const std::vector<Call>& calls, int ranks) {
  keep_images(size_t{6} << 30);
  for (Call call : calls) {
    call.shared_memory = false;  // this process must not use the library
    for (int r = 0; r < ranks; ++r) Execution(call, r, ranks);
  }
}

// Counts up the factors from `first` to `last`, the last one fastest. False behind the last choice.
bool advance(Choice& choice, size_t first, size_t last) {
  const std::vector<int> sizes = factor_sizes();
  for (size_t f = last; f-- > first;) {
    if (++choice[f] < sizes[f]) return true;
    choice[f] = 0;
  }
  return false;
}

// All calls on a communicator. They have the same values on every communicator with so many ranks.
std::vector<Call> calls_on(Choice communicator) {
  std::vector<Call> calls;
  uint64_t seed = 1;
  do {
    if (is_allowed(communicator)) calls.push_back(call_of(communicator, ++seed));
  } while (advance(communicator, kCommunicatorFactors, kFactors));
  return calls;
}

TEST(ApiCollectives, FullProduct) {
  const char* const wanted = std::getenv("TRESTLE_TEST_FULL");
  if (wanted == nullptr) GTEST_SKIP() << "only with TRESTLE_TEST_FULL=1: it is long";
  const Part part = part_of_product(wanted);
  ASSERT_FALSE(HasFailure());
  Buffer::reuse_memory();
  int ranks = 0;
  size_t communicators = 0, run = 0, calls_run = 0;
  Choice choice(kFactors);
  do {
    if (!is_allowed(choice) || communicators++ % part.parts != part.number - 1) continue;
    const ranks::Settings settings = settings_of(choice);
    const std::vector<Call> calls = calls_on(choice);
    if (settings.ranks != ranks) foresee(calls, settings.ranks);
    ranks = settings.ranks;
    run_calls(settings, calls, 1000);
    ASSERT_FALSE(HasFailure());
    ++run;
    calls_run += calls.size();
    // The product takes hours. Whoever ends it early must know how far it came.
    if (run % 50 == 0) std::cout << run << " communicators, " << calls_run << " calls without a failure" << std::endl;
  } while (advance(choice, 0, kCommunicatorFactors));
  std::cout << run << " of " << communicators << " communicators, " << calls_run << " calls on all their ranks\n"
            << "All of them with equal blocks: of the v-variants api_vectors_test runs ten times its selection\n";
}

// Sizes at which chunks, segments and both halves overlap.
TEST(ApiCollectives, LargeData) {
  const struct {
    ranks::Settings settings;
    size_t count;
  } cases[] = {{{.ranks = 2, .transport = "loopback"}, 3'000'017},
               {{.ranks = 2, .transport = "shm"}, 3'000'017},
               {{.ranks = 2, .transport = "tcp"}, 3'000'017},
               {{.ranks = 3, .transport = "tcp"}, 1'000'003},
               {{.ranks = 4, .dims = "2x2", .transport = "shm"}, 700'001},
               {{.ranks = 5, .transport = "shm"}, 300'007},
               {{.ranks = 8, .dims = "4x2", .transport = "shm,tcp"}, 100'003},
               {{.ranks = 8, .transport = "auto", .hosts = "aaabbbbb", .processes = true}, 100'003},
               {{.ranks = 8, .dims = "2x2x2", .transport = "loopback", .chunks = 16}, 100'003}};
  const trestleDataType_t types[] = {trestleFloat32, trestleBfloat16, trestleInt64, trestleFloat8e4m3};
  uint64_t seed = 500;
  for (const auto& c : cases) {
    std::vector<Call> calls;
    for (const trestleCollective_t collective : kEvenCollectives) {
      const bool blocks = collective == trestleCollReduceScatter || collective == trestleCollAllGather ||
                          collective == trestleCollAllToAll || collective == trestleCollGather ||
                          collective == trestleCollScatter;
      ++seed;
      calls.push_back({.collective = collective,
                       .type = types[seed % 4],
                       .op = trestleSum,
                       .in_place = seed % 2 == 0,
                       .count = blocks ? c.count / static_cast<size_t>(c.settings.ranks) : c.count,
                       .root = c.settings.ranks - 1,
                       .seed = seed,
                       .shared_memory = seed % 3 == 0});
    }
    run_calls(c.settings, calls);
  }
}

// A NaN on any rank makes the maximum or minimum a NaN.
TEST(ApiCollectives, NanWins) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      for (int t = trestleFloat16; t < trestleNumTypes; ++t) {
        const auto type = static_cast<trestleDataType_t>(t);
        const uint64_t nan = type == trestleFloat32    ? 0x7fc00000u
                             : type == trestleFloat64  ? 0x7ff8000000000000u
                             : type == trestleFloat16  ? 0x7e00u
                             : type == trestleBfloat16 ? 0x7fc0u
                                                       : 0x7fu;
        for (const trestleRedOp_t op : {trestleMax, trestleMin}) {
          constexpr size_t kElements = 37;
          std::vector<uint64_t> send(kElements);
          std::vector<uint64_t> recv(kElements);
          for (size_t i = 0; i < kElements; ++i) {
            // Element i is a NaN on rank i % 4; for 3 there is no such rank.
            store(type, send.data(), i, static_cast<int>(i % 4) == rank ? nan : encode(type, rank + 1.0));
          }
          ASSERT_TRUE(ranks::succeeded(trestleAllReduce(send.data(), recv.data(), kElements, type, op, comm, nullptr)));
          ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm)));
          for (size_t i = 0; i < kElements; ++i) {
            const double got = decode(type, load(type, recv.data(), i));
            if (i % 4 < 3) {
              EXPECT_TRUE(std::isnan(got)) << name(type) << " " << name(op) << " element " << i << ": " << got;
            } else {
              EXPECT_EQ(got, op == trestleMax ? 3.0 : 1.0) << name(type) << " " << name(op) << " element " << i;
            }
          }
        }
      }
    });
  }
}

// An algorithm that cannot serve a collective is refused with a list of those that can. The communicator still works.
TEST(ApiCollectives, AlgorithmThatCannotServeIsRefused) {
  const ranks::Settings settings{.ranks = 3, .transport = "loopback", .algo = "tree"};
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    float in[3] = {1, 2, 3};
    float out[3] = {7, 7, 7};
    EXPECT_TRUE(ranks::refused(trestleReduceScatter(in, out, 1, trestleFloat32, trestleSum, comm, nullptr),
                               trestleInvalidArgument, {"tree", "ring", "direct", "hd"}));
    EXPECT_EQ(out[0], 7.0f);
    run_and_verify({.count = 100}, rank, settings.ranks, comm);
  });
}

TEST(ApiCollectives, BarrierWaitsForAll) {
  const std::array<std::pair<const char*, const char*>, 5> ways = {
      {{"loopback", ""}, {"shm", ""}, {"tcp", ""}, {"tcp", "barrier:rd"}, {"shm", "barrier:dissemination"}}};
  for (const auto& [transport, algo] : ways) {
    std::atomic<int> here{0};
    const ranks::Settings settings{.ranks = 5, .transport = transport, .algo = algo};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      for (int round = 1; round <= 50; ++round) {
        ranks::Random random{static_cast<uint64_t>(round * 10 + rank)};
        ranks::spin(random.below(2000));
        here.fetch_add(1);
        ASSERT_TRUE(ranks::succeeded(trestleBarrier(comm, nullptr), comm));
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        ASSERT_GE(here.load(), 5 * round);
      }
    });
  }
}

}  // namespace
}  // namespace api_collectives_test
}  // namespace api
