// One order of summation: if sums round, all ranks and all runs still have the same bits, however the ranks are
// delayed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "conformance/api_space.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_determinism_test {
namespace {

using ranks::succeeded;

// Finite values of both signs and several magnitudes, so that no sum is exact.
std::vector<std::byte> rounding(trestleDataType_t type, size_t count, int rank) {
  std::vector<std::byte> values(count * size_of(type));
  ranks::Random random{static_cast<uint64_t>(rank) * 7919 + 3};
  for (size_t i = 0; i < count; ++i) {
    const double fraction = static_cast<double>(random.next() >> 12) * 0x1p-52 + 1;
    const double scale = std::ldexp(1.0, static_cast<int>(random.below(6)) - 3);
    store(type, values.data(), i, encode(type, (random.below(2) == 0 ? 1 : -1) * fraction * scale));
  }
  return values;
}

uint64_t digest(const std::vector<std::byte>& data) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const std::byte b : data) h = (h ^ static_cast<uint64_t>(b)) * 0x100000001b3ull;
  return h;
}

struct Sum {
  trestleDataType_t type;
  size_t count;
  trestleRedOp_t op = trestleSum;
};
constexpr Sum kSums[] = {{trestleFloat32, 1},
                         {trestleFloat32, 1000},
                         {trestleFloat16, 5003},
                         {trestleBfloat16, 777},
                         {trestleFloat64, 20'011},
                         {trestleFloat16, 5003, trestleAvg},
                         {trestleFloat8e4m3, 90'001, trestleAvg}};

// Runs the sums `runs` times on ranks with random delays. Returns the digests of the results, which all runs and ranks
// must share.
std::vector<uint64_t> digests(int rank, trestleComm_t comm, int runs, std::vector<uint64_t>& of_ranks) {
  std::vector<uint64_t> first;
  for (int run = 0; run < runs; ++run) {
    ranks::Random random{static_cast<uint64_t>(run * 100 + rank)};
    for (size_t s = 0; s < std::size(kSums); ++s) {
      const auto& [type, count, op] = kSums[s];
      const std::vector<std::byte> send = rounding(type, count, rank);
      std::vector<std::byte> recv(send.size());
      ranks::spin(random.below(4) == 0 ? random.below(100'000) : random.below(300));
      EXPECT_TRUE(succeeded(trestleAllReduce(send.data(), recv.data(), count, type, op, comm, nullptr), comm));
      ranks::spin(random.below(3000));
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      const uint64_t got = digest(recv);
      if (run == 0) first.push_back(got);
      EXPECT_EQ(got, first[s]) << "rank " << rank << ", run " << run << ", " << count << " " << name(type);
    }
  }
  of_ranks = first;
  return first;
}

std::string run_sums(const ranks::Settings& settings, int runs) {
  ranks::Job job;
  job.body = [&](ranks::Process& process) {
    std::vector<std::vector<uint64_t>> of_ranks(static_cast<size_t>(settings.ranks));
    ranks::run_threads(settings, [&](int rank, trestleComm_t comm) {
      digests(rank, comm, runs, of_ranks[static_cast<size_t>(rank)]);
    });
    for (const auto& one : of_ranks) EXPECT_EQ(one, of_ranks[0]) << "ranks differ; " << settings;
    for (const uint64_t d : of_ranks[0]) process.result += std::to_string(d) + " ";
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  return outcomes[0].result;
}

TEST(ApiDeterminism, SameBitsOnAllRanksInAllRuns) {
  bool many = false;
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    for (const int chunks : {-1, 1, 16}) {
      many = !many;
      run_sums({.ranks = many ? 8 : 3, .dims = many ? "4x2" : "", .transport = transport, .chunks = chunks},
               chunks == -1 ? 20 : 5);
    }
  }
}

// The plan fixes the order, so an algorithm gives the same bits in a new communicator.
TEST(ApiDeterminism, SameBitsInANewCommunicator) {
  for (const char* algorithm : {"ring", "direct", "hd", "rd", "tree", "dbtree"}) {
    const ranks::Settings settings{.ranks = 5, .transport = "shm", .algo = algorithm_rules(algorithm, ""), .chunks = 1};
    EXPECT_EQ(run_sums(settings, 3), run_sums(settings, 3)) << algorithm;
  }
}

}  // namespace
}  // namespace api_determinism_test
}  // namespace api
