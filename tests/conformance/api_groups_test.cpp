// Groups and point-to-point messages: the calls between GroupStart and GroupEnd progress together, or none is enqueued.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/api_call.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_groups_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const char* const kTransports[] = {"loopback", "shm", "tcp"};

// The contents of a buffer: `count` random elements of `rank`'s stream `seed`.
std::vector<std::byte> bits_of(trestleDataType_t type, uint64_t seed, int rank, size_t count) {
  std::vector<std::byte> buffer(count * size_of(type) + 1);
  fill_bits(buffer.data(), type, seed, rank, 0, count);
  return buffer;
}

// All ranks send to all ranks, including themselves, in one group: blocks of different sizes and types, some with 0
// elements.
void exchange(int rank, int ranks, trestleComm_t comm, trestleDataType_t type, size_t unit) {
  const auto count = [&](int from, int to) { return unit * static_cast<size_t>((from * 3 + to) % 4); };
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> received;
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  for (int p = 0; p < ranks; ++p) {
    sent.push_back(bits_of(type, 40 + static_cast<uint64_t>(p), rank, count(rank, p)));
    received.emplace_back(count(p, rank) * size_of(type) + 1);
    EXPECT_TRUE(succeeded(trestleSend(sent.back().data(), count(rank, p), type, p, comm, nullptr)));
    EXPECT_TRUE(succeeded(trestleRecv(received.back().data(), count(p, rank), type, p, comm, nullptr)));
  }
  ASSERT_TRUE(succeeded(trestleGroupEnd(), comm));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  for (int p = 0; p < ranks; ++p) {
    const auto wanted = bits_of(type, 40 + static_cast<uint64_t>(rank), p, count(p, rank));
    EXPECT_TRUE(received[static_cast<size_t>(p)] == wanted) << "from rank " << p << " to " << rank << ", unit " << unit;
  }
}

TEST(ApiGroups, EverybodySendsToEverybody) {
  for (const char* transport : kTransports) {
    for (const int n : {1, 2, 5, 8}) {
      const ranks::Settings settings{.ranks = n, .transport = transport};
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        exchange(rank, n, comm, trestleInt8, 1);
        exchange(rank, n, comm, trestleFloat32, 1009);
        exchange(rank, n, comm, trestleFloat64, 40'000);
      });
    }
  }
}

// Messages of a pair match in the order of the calls, whatever their sizes.
TEST(ApiGroups, MessagesOfAPairKeepTheirOrder) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      constexpr uint64_t kMessages = 120;
      const auto count = [](uint64_t m) { return static_cast<size_t>(m % 5 == 0 ? m * 997 : m); };
      std::vector<std::vector<std::byte>> buffers;
      for (uint64_t m = 0; m < kMessages; ++m) {
        buffers.push_back(rank == 0 ? bits_of(trestleInt32, m, 0, count(m)) : std::vector<std::byte>(count(m) * 4 + 1));
        if (rank == 0) {
          ASSERT_TRUE(succeeded(trestleSend(buffers[m].data(), count(m), trestleInt32, 1, comm, nullptr), comm));
        } else {
          ASSERT_TRUE(succeeded(trestleRecv(buffers[m].data(), count(m), trestleInt32, 0, comm, nullptr), comm));
        }
      }
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      for (uint64_t m = 0; rank == 1 && m < kMessages; ++m) {
        EXPECT_TRUE(buffers[m] == bits_of(trestleInt32, m, 0, count(m))) << transport << ", message " << m;
      }
    });
  }
}

// One thread drives all ranks. The calls of a group do not wait for each other, although each needs all ranks.
void drive_all(const std::vector<trestleComm_t>& comms, const Call& call, bool grouped) {
  const int n = static_cast<int>(comms.size());
  std::vector<std::unique_ptr<Execution>> runs;
  if (grouped) {
    ASSERT_TRUE(succeeded(trestleGroupStart()));
  }
  for (int r = 0; r < n; ++r) {
    runs.push_back(std::make_unique<Execution>(call, r, n));
    EXPECT_TRUE(succeeded(runs.back()->start(comms[static_cast<size_t>(r)], nullptr)));
  }
  if (grouped) {
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
  }
  for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  for (auto& run : runs) EXPECT_EQ(run->verify(), "");
}

TEST(ApiGroups, OneThreadDrivesAllRanks) {
  for (const char* transport : kTransports) {
    for (const bool grouped : {true, false}) {
      const ranks::Settings settings{.ranks = 4, .transport = transport};
      ranks::isolated([&] {
        std::vector<trestleComm_t> comms(4);
        const trestleConfig_t config = config_of(settings);
        ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms.data(), 4, &config)));
        for (int k = trestleCollAllReduce; k <= trestleCollAllToAll; ++k) {
          for (const size_t count : {size_t{3}, size_t{900}, size_t{50'021}}) {
            drive_all(comms, {.collective = static_cast<trestleCollective_t>(k), .count = count, .root = 2, .seed = 77},
                      grouped);
          }
        }
        for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      });
    }
  }
}

// Only the outermost End enqueues: a receive inside the inner group and its send outside progress together.
TEST(ApiGroups, GroupsNest) {
  const ranks::Settings settings{.ranks = 2, .transport = "shm"};
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    const auto out = bits_of(trestleFloat64, 9, rank, 30'000);
    std::vector<std::byte> in(out.size());
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleRecv(in.data(), 30'000, trestleFloat64, 1 - rank, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    EXPECT_TRUE(succeeded(trestleSend(out.data(), 30'000, trestleFloat64, 1 - rank, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleGroupEnd(), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_TRUE(in == bits_of(trestleFloat64, 9, 1 - rank, 30'000));
  });
}

TEST(ApiGroups, EndWithoutStartIsRefused) {
  ranks::isolated([] {
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"Group"}));
    EXPECT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleGroupEnd()));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"Group"}));
  });
}

// Only one rank makes a group with a bad call in the middle. If a part of it were enqueued, the numbers or data of the
// following operations would not match the other rank's.
TEST(ApiGroups, AnErrorRefusesTheWholeGroup) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
      float b[8] = {};
      if (rank == 0) {
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        EXPECT_TRUE(succeeded(trestleAllReduce(a, b, 8, trestleFloat32, trestleSum, comm, nullptr)));
        EXPECT_TRUE(refused(trestleAllReduce(a, b, 8, trestleFloat32, trestleNumOps, comm, nullptr),
                            trestleInvalidArgument, {"operator"}));
        EXPECT_TRUE(succeeded(trestleSend(a, 8, trestleFloat32, 1, comm, nullptr)));
        EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"operator", "5"}));
        EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm)) << "nothing was enqueued";
        trestleResult_t state = trestleInternalError;
        EXPECT_TRUE(succeeded(trestleCommGetAsyncError(comm, &state)));
        EXPECT_EQ(state, trestleSuccess);
      }
      run_and_verify({.count = 1000, .seed = 2}, rank, 2, comm);
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleSend(a, 8, trestleFloat32, 1 - rank, comm, nullptr)));
      EXPECT_TRUE(succeeded(trestleRecv(b, 8, trestleFloat32, 1 - rank, comm, nullptr)));
      ASSERT_TRUE(succeeded(trestleGroupEnd(), comm));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      EXPECT_EQ(std::memcmp(a, b, sizeof a), 0);
    });
  }
}

// A bad call of an inner group also makes the outermost End fail.
TEST(ApiGroups, AnErrorInAnInnerGroupRefusesTheOuter) {
  const ranks::Settings settings{.ranks = 2, .transport = "loopback"};
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    float a[8] = {};
    float b[8] = {};
    if (rank == 1) {
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleRecv(b, 8, trestleFloat32, 0, comm, nullptr)));
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(refused(trestleSend(a, 8, trestleFloat32, 2, comm, nullptr), trestleInvalidArgument, {"peer 2"}));
      trestleGroupEnd();
      EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"peer 2"}));
    }
    run_and_verify({.count = 100}, rank, 2, comm);
  });
}

// Runs twelve collectives of two communicators in one group, on the communicators' own streams.
void run_on_both(int rank, trestleComm_t first, trestleComm_t second) {
  std::vector<std::unique_ptr<Execution>> runs;
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  for (uint64_t i = 0; i < 12; ++i) {
    const Call call{.collective = static_cast<trestleCollective_t>(i % 6), .count = 100 + i * 3000, .seed = 60 + i};
    runs.push_back(std::make_unique<Execution>(call, rank, 3));
    EXPECT_TRUE(succeeded(runs.back()->start(i % 2 == 0 ? first : second, nullptr)));
  }
  ASSERT_TRUE(succeeded(trestleGroupEnd(), first));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(first), first));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(second), second));
  for (auto& run : runs) EXPECT_EQ(run->verify(), "");
}

TEST(ApiGroups, CollectivesOfTwoCommunicators) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::isolated([&] {
      std::vector<trestleComm_t> other(3);
      const trestleConfig_t config = config_of(settings);
      ASSERT_TRUE(succeeded(trestleCommInitAllConfig(other.data(), 3, &config)));
      ranks::run_threads(settings, [&](int rank, trestleComm_t comm) {
        run_on_both(rank, comm, other[static_cast<size_t>(rank)]);
        EXPECT_TRUE(succeeded(trestleCommDestroy(other[static_cast<size_t>(rank)])));
      });
    });
  }
}

// One thread that holds several ranks may make communicators inside a group.
TEST(ApiGroups, OneThreadJoinsAsTwoRanks) {
  if (!ranks::proofs()) GTEST_SKIP() << "built without what proofs of membership need";
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
    trestleComm_t comms[2] = {};
    const ranks::Settings settings{.ranks = 2, .timeout_ms = 20'000};
    const trestleConfig_t config = config_of(settings);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(trestleCommInitRankConfig(&comms[r], 2, id, r, &config)));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (int r = 0; r < 2; ++r) {
      int rank = -1;
      EXPECT_TRUE(succeeded(trestleCommUserRank(comms[r], &rank)));
      EXPECT_EQ(rank, r);
      EXPECT_TRUE(succeeded(trestleCommDestroy(comms[r])));
    }
  });
}

}  // namespace
}  // namespace api_groups_test
}  // namespace api
