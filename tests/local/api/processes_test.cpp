// The core set of collectives with processes as ranks: over shared memory, over TCP, over both, on one host and on
// pretended ones (TRESTLE_HOSTID), and with every way in which ranks meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "conformance/api_call.h"
#include "conformance/api_space.h"
#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace processes_test {
namespace {

using ranks::succeeded;

// Ranks below `first` are on host "left", the others on host "right".
std::function<ranks::Env(int)> two_hosts(int first) {
  return [first](int rank) { return ranks::Env{{"TRESTLE_HOSTID", rank < first ? "left" : "right"}}; };
}

// At most `count` calls that cover as many pairs of collective, type, operator, place and count as possible.
std::vector<Call> core_set(int count, uint64_t seed) {
  Cover cover(factor_sizes(), is_allowed, seed);
  std::vector<Call> calls;
  for (int i = 0; i < count; ++i) calls.push_back(call_of(cover.next({}), seed * 1000 + static_cast<uint64_t>(i)));
  for (const size_t large : {size_t{300'007}, size_t{1'000'003}}) {
    calls.push_back({.collective = trestleCollAllReduce, .count = large, .seed = seed + large});
  }
  return calls;
}

void run_core_set(const ranks::Settings& settings, const std::function<ranks::Env(int)>& env, int count) {
  const std::vector<Call> calls = core_set(count, static_cast<uint64_t>(settings.ranks) * 10 + settings.dims.size());
  ranks::on_processes(
      settings,
      [&](ranks::Process& process, trestleComm_t comm) {
        for (Call call : calls) {
          call.root = static_cast<int>(call.seed % static_cast<uint64_t>(settings.ranks));
          call.shared_memory = (call.seed + static_cast<uint64_t>(process.rank)) % 2 == 0;  // only on some ranks
          run_and_verify(call, process.rank, settings.ranks, comm);
          if (testing::Test::HasFailure()) FAIL() << "at " << call << "; " << settings;
        }
      },
      env, 60);
}

TEST(ApiProcesses, SharedMemory) {
  for (const int n : {1, 2, 3, 8}) run_core_set({.ranks = n, .transport = "shm"}, {}, 60);
  run_core_set(
      {.ranks = 5, .transport = "shm", .algo = "ring;alltoall:direct;gather:direct;scatter:direct", .chunks = 5}, {},
      60);
}

TEST(ApiProcesses, Tcp) {
  for (const int n : {2, 3, 7}) run_core_set({.ranks = n, .transport = "tcp"}, {}, 60);
  run_core_set({.ranks = 4, .dims = "2x2", .transport = "tcp", .algo = "allreduce:hd,ring", .chunks = 16}, {}, 60);
}

// Sends around a ring, in groups. Then rank 0 sends to rank 1, which receives only after the sender has checked often
// enough.
void send_only_when_asked(ranks::Process& process, trestleComm_t comm) {
  const int next = (process.rank + 1) % process.ranks;
  const int previous = (process.rank + process.ranks - 1) % process.ranks;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{100}, size_t{5'000}, size_t{100'003}}) {
    const std::vector<int32_t> sent(count, process.rank);
    std::vector<int32_t> received(count, -1);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(trestleSend(sent.data(), count, trestleInt32, next, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleRecv(received.data(), count, trestleInt32, previous, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleGroupEnd(), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(received, std::vector<int32_t>(count, previous));
  }
  constexpr int kLooks = 2000;
  int32_t value = 7 + process.rank;
  if (process.rank == 0) {
    trestleStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
    ASSERT_TRUE(succeeded(trestleSend(&value, 1, trestleInt32, 1, comm, stream), comm));
    for (int i = 0; i < kLooks; ++i) ASSERT_EQ(trestleStreamQuery(stream), trestleInProgress) << "look " << i;
    process.board.word[0].store(1);
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream), comm));
  } else if (process.rank == 1) {
    ranks::wait_until([&] { return process.board.word[0].load() != 0; });
    ASSERT_TRUE(succeeded(trestleRecv(&value, 1, trestleInt32, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(value, 7);
  }
}

TEST(ApiProcesses, AnEagerLimitOfZero) {
  const auto env = [](int) { return ranks::Env{{"TRESTLE_EAGER", "0"}}; };
  for (const char* transport : {"shm", "tcp"}) {
    run_core_set({.ranks = 3, .transport = transport}, env, 40);
    ranks::on_processes({.ranks = 3, .transport = transport}, send_only_when_asked, env);
  }
}

TEST(ApiProcesses, FourByTwoOverSharedMemoryAndTcp) {
  run_core_set({.ranks = 8, .dims = "4x2", .transport = "shm,tcp"}, {}, 120);
  run_core_set({.ranks = 8, .dims = "4x2", .transport = "shm,tcp", .algo = "allreduce:ring,hd", .chunks = 5}, {}, 60);
  run_core_set({.ranks = 8, .dims = "2x2x2", .transport = "shm,shm,tcp", .chunks = 2}, {}, 60);
}

TEST(ApiProcesses, PretendedHosts) {
  run_core_set({.ranks = 8}, two_hosts(4), 60);
  run_core_set({.ranks = 8}, two_hosts(3), 90);  // 3 + 5: one flat dimension
  run_core_set({.ranks = 2}, two_hosts(1), 60);
}

trestleCommStats_t stats_of(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(succeeded(trestleCommGetStats(comm, &stats)));
  return stats;
}

// A rank sends to its right neighbour from memory that the host's peers can map. A peer on its host reads it in place;
// other peers do not.
TEST(ApiProcesses, NeighboursOnOneHostOfAFlatDimensionReadEachOthersMemory) {
  static constexpr size_t kBytes = 300'000;
  ranks::on_processes(
      {.ranks = 8},
      [](ranks::Process& process, trestleComm_t comm) {
        const int right = (process.rank + 1) % 8;
        const int left = (process.rank + 7) % 8;
        void* out = nullptr;
        std::vector<char> in(kBytes);
        ASSERT_TRUE(succeeded(trestleMemAlloc(&out, kBytes)));
        std::fill_n(static_cast<char*>(out), kBytes, static_cast<char>(process.rank));
        EXPECT_EQ(stats_of(comm).dimension[0].ranks, 8u);
        EXPECT_EQ(stats_of(comm).dimension[1].ranks, 0u) << "3 + 5 is one flat dimension";
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        ASSERT_TRUE(succeeded(trestleSend(out, kBytes, trestleInt8, right, comm, nullptr)));
        ASSERT_TRUE(succeeded(trestleRecv(in.data(), kBytes, trestleInt8, left, comm, nullptr)));
        ASSERT_TRUE(succeeded(trestleGroupEnd()));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        EXPECT_EQ(in, std::vector<char>(kBytes, static_cast<char>(left)));
        const trestleCommStats_t stats = stats_of(comm);
        const bool same_host = (process.rank < 3) == (right < 3);
        EXPECT_EQ(stats.dimension[0].bytesSent, kBytes);
        EXPECT_EQ(stats.dimension[0].bytesMapped, same_host ? kBytes : 0) << process.rank << " to " << right;
        ASSERT_TRUE(succeeded(trestleMemFree(out)));
      },
      two_hosts(3));
}

// Ranks meet through variables instead of an id. `look` runs at the end on each of them; it may be empty.
void run_without_id(const std::function<ranks::Env(int)>& env, const std::string& transport = "",
                    const std::function<void()>& look = {}) {
  ranks::Job job;
  job.ranks = 3;
  job.env = env;
  job.body = [&](ranks::Process& process) {
    const ranks::Settings settings{.ranks = 3, .transport = transport, .timeout_ms = 20'000};
    const trestleConfig_t config = config_of(settings);
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(trestleCommInitRankConfig(&comm, 3, trestleUniqueId{}, process.rank, &config)));
    for (uint64_t i = 1; i < 5; ++i) run_and_verify({.count = 1000 * i, .seed = i}, process.rank, 3, comm);
    if (look) look();
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Checks all connections of this process: it reaches two other ranks over TCP.
void expect_only_ipv6() {
  const Connections connections = own_connections();
  EXPECT_EQ(connections.ipv4, 0);
  EXPECT_GE(connections.ipv6, 2);
}

TEST(ApiProcesses, Ipv6) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this machine has no ::1";
  const std::string port = std::to_string(free_port());
  run_without_id([&](int) { return ranks::Env{{"TRESTLE_COMM_ID", "[::1]:" + port}}; }, "tcp", expect_only_ipv6);
  run_without_id(
      [&](int) {
        return ranks::Env{{"TRESTLE_COMM_ID", "[::1]:" + port}, {"TRESTLE_SECRET", "a b c"}};
      },
      "tcp", expect_only_ipv6);
  run_without_id(
      [&](int rank) {
        return ranks::Env{
            {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", port}};
      },
      "tcp", expect_only_ipv6);
}

TEST(ApiProcesses, UniqueIdOverIpv6) {
  if (!has_ipv6_loopback()) GTEST_SKIP() << "this machine has no ::1";
  const auto env = [](int) {
    return ranks::Env{{"TRESTLE_SOCKET_FAMILY", "AF_INET6"}, {"TRESTLE_SOCKET_IFNAME", "=lo"}};
  };
  ranks::on_processes(
      {.ranks = 3, .transport = "tcp"},
      [](ranks::Process& process, trestleComm_t comm) {
        for (const size_t count : {size_t{1}, size_t{1'000'003}})
          run_and_verify({.count = count}, process.rank, 3, comm);
        expect_only_ipv6();
      },
      env);
}

TEST(ApiProcesses, LauncherVariables) {
  const std::string port = std::to_string(free_port());
  run_without_id([&](int rank) {
    return ranks::Env{{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "3"},
                      {"LOCAL_RANK", std::to_string(rank)},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port}};
  });
}

TEST(ApiProcesses, CommunicatorId) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  run_without_id([&](int) { return ranks::Env{{"TRESTLE_COMM_ID", address}, {"TRESTLE_SECRET", "a b c"}}; });
}

TEST(ApiProcesses, Store) {
  const TemporaryFolder folder;
  run_without_id([&](int) { return ranks::Env{{"TRESTLE_STORE", "file:" + folder.path("store")}}; });
}

TEST(ApiProcesses, LauncherInfo) {
  ranks::isolated(
      [] {
        int rank = -1;
        int n = -1;
        int local = -1;
        ASSERT_TRUE(succeeded(trestleLauncherInfo(&rank, &n, &local)));
        EXPECT_EQ(rank, 5);
        EXPECT_EQ(n, 8);
        EXPECT_EQ(local, 1);
        EXPECT_TRUE(succeeded(trestleLauncherInfo(nullptr, nullptr, nullptr)));
      },
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}});
  ranks::isolated(
      [] {
        int rank = -1;
        EXPECT_TRUE(ranks::refused(trestleLauncherInfo(&rank, nullptr, nullptr), trestleInvalidUsage,
                                   {"RANK=5 is set", "WORLD_SIZE is not"}));
        EXPECT_EQ(rank, -1);
      },
      {{"RANK", "5"}});
}

// As with MPI: a process without a launcher is rank 0 of 1, which needs no rendezvous.
TEST(ApiProcesses, AProcessAloneIsRankZeroOfOne) {
  ranks::isolated([] {
    int rank = -1;
    int n = -1;
    int local = -1;
    ASSERT_TRUE(succeeded(trestleLauncherInfo(&rank, &n, &local)));
    EXPECT_EQ(rank, 0);
    EXPECT_EQ(n, 1);
    EXPECT_EQ(local, 0);
    const trestleUniqueId none{};
    for (int round = 0; round < 2; ++round) {
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(succeeded(trestleCommInitRank(&comm, 1, none, 0)));
      run_and_verify({.count = 1000}, 0, 1, comm);
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    }
  });
}

TEST(ApiProcesses, MoreRanksThatNothingHasStartedAreToldWhatToSet) {
  ranks::isolated([] {
    const trestleUniqueId none{};
    trestleComm_t comm = nullptr;
    EXPECT_TRUE(ranks::refused(trestleCommInitRank(&comm, 4, none, 0), trestleInvalidUsage,
                               {"4 ranks", "started alone", "trestle run", "mpirun", "MASTER_ADDR", "TRESTLE_COMM_ID",
                                "TRESTLE_STORE", "docs/launching.md"}));
    EXPECT_EQ(comm, nullptr);
  });
}

// Unreadable variables are errors, not defaults, for any number of ranks.
TEST(ApiProcesses, ABadPortIsRefusedForAnyNumberOfRanks) {
  for (const int n : {1, 2}) {
    ranks::isolated(
        [n] {
          const trestleUniqueId none{};
          trestleComm_t comm = nullptr;
          EXPECT_TRUE(ranks::refused(trestleCommInitRank(&comm, n, none, 0), trestleInvalidUsage,
                                     {"MASTER_PORT=99999", "65535"}));
        },
        {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "99999"}});
  }
}

// Several communicators of the same processes are used in turn and destroyed in different orders on different ranks.
TEST(ApiProcesses, SeveralCommunicators) {
  ranks::Job job;
  job.ranks = 3;
  job.body = [](ranks::Process& process) {
    constexpr int kCommunicators = 4;
    const ranks::Settings settings{.ranks = 3};
    std::vector<trestleComm_t> comms(kCommunicators);
    for (trestleComm_t& comm : comms) {
      ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
      ranks::drop_id(process);
    }
    for (uint64_t i = 0; i < 40; ++i) run_and_verify({.count = i * 701, .seed = i}, process.rank, 3, comms[i % 4]);
    for (int k = 0; k < kCommunicators; ++k) {
      EXPECT_TRUE(succeeded(trestleCommDestroy(comms[static_cast<size_t>((k + process.rank) % kCommunicators)])));
    }
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Destroy never waits for other ranks' Destroy: rank 0 exits before the others even begin to leave.
TEST(ApiProcesses, DestroyDoesNotWaitForOthers) {
  const ranks::Settings settings{.ranks = 3, .dims = "3", .transport = "tcp"};
  ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
    run_and_verify({.count = 50'000}, process.rank, 3, comm);
    if (process.rank != 0) ranks::wait_until([&] { return process.board.word[0].load() != 0; });
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    process.board.word[0].store(1);
  });
}

}  // namespace
}  // namespace processes_test
}  // namespace api
