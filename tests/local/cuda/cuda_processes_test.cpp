// Ranks in processes of their own, with devices: each reads the outboxes of the others where they lie. Where a device
// cannot, or where there is no memory for an outbox, messages go through host memory, with the same results.
#include <algorithm>
#include <csignal>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "local/cuda/process_rank.h"

namespace fake_gpu {
namespace cuda_processes_test {
namespace {

// What the processes of a case do differently.
struct Case {
  std::vector<int> devices;
  bool in_place = true;  // the receiver's device reads messages where they lie: in an outbox
  bool divided = false;  // parts of them through host memory
  size_t count = kCount;
  std::function<void(int rank)> before{};
  std::function<ranks::Env(int rank)> env{};
  std::string says{};  // rank 0's log
};

using CudaProcesses = Processes;

void run_case(const Case& what) {
  const auto body = [&](Process& process) {
    if (what.before) what.before(process.rank);
    ProcessRank rank(process, what.devices[static_cast<size_t>(process.rank)], what.count);
    rank.join(ranks::config_of({}));
    rank.run_all();
    EXPECT_EQ(rank.sent_through_host() > 0, what.divided);
    const auto [sent, mapped] = rank.sent();
    EXPECT_GT(sent, kCount);
    EXPECT_EQ(mapped, what.in_place ? sent : 0);
    rank.end();
  };
  const auto outcomes = run_processes(static_cast<int>(what.devices.size()), body, [&](int rank) {
    ranks::Env env = what.env ? what.env(rank) : ranks::Env{};
    env["TRESTLE_DEBUG"] = "INFO";
    return env;
  });
  EXPECT_TRUE(ranks::contains(outcomes[0].output, what.says)) << outcomes[0].output;
}

TEST_F(CudaProcesses, OfOneDeviceReadEachOthersMemory) {
  run_case({.devices = {0, 0}, .says = "those of 1 ranks of other processes read each other's memory"});
  run_case({.devices = {0, 0, 0, 0, 0}, .says = "those of 4 ranks of other processes read each other's memory"});
}

TEST_F(CudaProcesses, OfSeveralDevicesReadEachOthersMemory) {
  run_case({.devices = {0, 1}});
  run_case({.devices = {1, 0, 1}});
}

// By tickets, as CUDA calls IPC, if one of them has no other way.
TEST_F(CudaProcesses, WithoutDescriptorsReadEachOthersMemory) {
  const auto none = [](int) { return ranks::Env{{"FAKE_DRIVER_WITHOUT_DESCRIPTORS", "1"}}; };
  const auto first = [&](int rank) { return rank == 0 ? none(0) : ranks::Env{}; };
  run_case({.devices = {0, 0, 1}, .env = none});
  run_case({.devices = {0, 0, 1}, .env = first});
}

TEST_F(CudaProcesses, WhoseDevicesDoNotReachEachOtherUseHostMemory) {
  run_case({.devices = {0, 1},
            .before = [](int) { driver().set_peer_access(false); },
            .says = "messages between them go through host memory"});
  run_case({.devices = {0, 1, 0, 1},
            .before = [](int) { driver().set_peer_access(false); },
            .says = "read each other's host memory where it lies"});
}

// Then no processor copies data, unless the user does not want memory of other processes to be mapped.
TEST_F(CudaProcesses, CopyThroughHostMemoryWhereItMayNotBeMapped) {
  const auto off = [](int) { return ranks::Env{{"TRESTLE_SHM_MAP", "0"}}; };
  run_case({.devices = {0, 1}, .in_place = false, .before = [](int) { driver().set_peer_access(false); }, .env = off});
}

// More is under way than the outboxes hold. Messages without room take the old way, and no call waits for another one.
TEST_F(CudaProcesses, GoOnWhereTheirOutboxesAreFull) {
  constexpr size_t kMany = size_t{1} << 20;  // a room of 4 MiB each
  constexpr int kCalls = 20;
  for (const bool peer_access : {false, true}) {
    run_processes(2, [peer_access](Process& process) {
      driver().set_peer_access(peer_access);
      ProcessRank rank(process, process.rank, kCalls * kMany);
      rank.join(ranks::config_of({}));
      std::vector<trestleStream_t> streams;
      for (size_t i = 0; i < kCalls * kMany; ++i) rank.send()[i] = static_cast<float>(i / kMany);
      // Rank 1 reads nothing until rank 0 has sent more than its outbox holds.
      driver().hold_streams(process.rank == 1);
      for (int i = 0; i < kCalls; ++i) {
        streams.push_back(wrapped(rank.gpu().make_stream(process.rank)));
        const size_t at = static_cast<size_t>(i) * kMany;
        ASSERT_TRUE(succeeded(
            process.rank == 0 ? trestleSend(rank.send() + at, kMany, trestleFloat32, 1, rank.comm(), streams.back())
                              : trestleRecv(rank.recv() + at, kMany, trestleFloat32, 0, rank.comm(), streams.back())));
      }
      std::atomic<int64_t>& is_full = process.board.word[0];
      const auto has_no_room = [&] { return rank.sent().first > rank.sent().second; };
      ranks::wait_until([&] { return process.rank == 1 ? is_full.load() != 0 : has_no_room(); });
      is_full = 1;
      driver().hold_streams(false);
      for (const trestleStream_t stream : streams) {
        ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
        EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
      }
      if (process.rank == 0) {
        EXPECT_GT(rank.sent().second, 0u);
      } else {
        EXPECT_TRUE(std::equal(rank.recv(), rank.recv() + kCalls * kMany, rank.send()));
      }
      rank.end();
    });
  }
}

// Divided messages have four segments and more.
ranks::Env short_segments(int) {
  return {{"TRESTLE_SEGMENT", "1M"}};
}

// The end of long messages goes through outboxes in host memory.
TEST_F(CudaProcesses, DivideLongMessages) {
  const auto on = [](int) { return ranks::Env{{"TRESTLE_HOST_PATH", "on"}, {"TRESTLE_SEGMENT", "1M"}}; };
  run_case({.devices = {0, 0},
            .divided = true,
            .count = 3'000'011,
            .env = on,
            .says = "those of 1 ranks of other processes read each other's host memory"});
  run_case({.devices = {0, 1, 1}, .divided = true, .count = 3'600'000, .env = on});
  const auto slow_nvlinks = [](int) {
    driver().set_nvlinks(true);
    driver().slow_device_copies(2000);
  };
  run_case({.devices = {0, 1}, .divided = true, .count = 3'000'011, .before = slow_nvlinks, .env = short_segments});
}

// What one rank alone wants, or may not, leaves messages whole.
TEST_F(CudaProcesses, DivideMessagesOnlyWhereBothEndsCan) {
  const auto alone = [](int rank) {
    return ranks::Env{{"TRESTLE_HOST_PATH", rank == 0 ? "on" : "off"}, {"TRESTLE_SEGMENT", "1M"}};
  };
  run_case({.devices = {0, 0}, .count = 3'000'011, .env = alone});
  run_case({.devices = {0, 0}, .count = 3'000'011, .env = short_segments});
}

// Selection counts with the worst way between two ranks of a dimension, on every rank the same.
TEST_F(CudaProcesses, SelectByTheWaysOfDeviceMemory) {
  const auto graph = [](int) { return ranks::Env{{"TRESTLE_DEBUG_SUBSYS", "GRAPH"}}; };
  const auto alone = [](int rank) {
    return ranks::Env{{"TRESTLE_DEBUG_SUBSYS", "GRAPH"}, {"TRESTLE_PEER_ACCESS", rank == 0 ? "1" : "0"}};
  };
  const auto nvlinks = [](int) { driver().set_nvlinks(true); };
  run_case({.devices = {0, 0}, .env = graph, .says = "20480000 Mb/s (within one device, through an outbox)"});
  run_case({.devices = {0, 0, 1}, .env = graph, .says = "252061 Mb/s (devices read each other, through an outbox)"});
  run_case({.devices = {0, 1},
            .before = nvlinks,
            .env = graph,
            .says = "3600000 Mb/s (devices read each other, through an outbox)"});
  run_case({.devices = {0, 0, 0}, .env = alone, .says = "Mb/s (through host memory)"});
}

// What rank 0 of four logs of the schedules that it chooses, without their times. paths: between the ranks' devices.
std::string schedules(bool paths, bool deterministic) {
  const auto body = [deterministic](Process& process) {
    ProcessRank rank(process, 0);
    rank.join(ranks::config_of({}));
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.deterministic = deterministic ? 1 : 0;
    ASSERT_TRUE(succeeded(trestleCallConfigPush(&config)));
    for (const size_t count : {1'000, 10'000, 100'000, 300'000})
      ASSERT_TRUE(succeeded(all_reduce(rank.recv(), count, rank.comm(), rank.stream())));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream())));
    rank.end();
  };
  const auto outcomes = run_processes(4, body, [paths](int) {
    return ranks::Env{
        {"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_SUBSYS", "TUNING"}, {"TRESTLE_PEER_ACCESS", paths ? "1" : "0"}};
  });
  std::istringstream output(outcomes[0].output);
  std::string chosen;
  for (std::string line; std::getline(output, line);) {
    const size_t mark = line.find(" INFO ");
    if (mark != std::string::npos && !ranks::contains(line, ", predicted ")) chosen += line.substr(mark) + "\n";
  }
  EXPECT_TRUE(ranks::contains(chosen, " by ")) << outcomes[0].output;
  return chosen;
}

// Their sums round alike on all machines, so neither devices nor the paths between them may matter.
TEST_F(CudaProcesses, DeterministicCallsDoTheSameWhateverPathsThereAre) {
  EXPECT_NE(schedules(true, false), schedules(false, false));
  EXPECT_EQ(schedules(true, true), schedules(false, true));
}

// One direction is enough to lose the path.
TEST_F(CudaProcesses, WhoseDevicesReadOtherBytesUseHostMemory) {
  for (const bool copies : {true, false}) {
    run_case({.devices = {0, 1},
              .before = [copies](int rank) { driver().break_peer_access(copies && rank == 0, !copies && rank == 0); },
              .says = std::string(copies ? "a copy" : "a kernel") + " read other bytes than were written"});
  }
}

TEST_F(CudaProcesses, WhoseMemoryCannotBeSharedUseHostMemory) {
  run_case({.devices = {0, 0},
            .before =
                [](int rank) {
                  driver().set_descriptors(false);
                  if (rank == 0) driver().allocate_from_pools(true);
                },
            .says = "ranks of other processes cannot read memory of device 0"});
}

TEST_F(CudaProcesses, ThatMayNotUseHostMemory) {
  const auto off = [](int rank) { return rank == 0 ? ranks::Env{{"TRESTLE_PEER_ACCESS", "0"}} : ranks::Env{}; };
  run_case({.devices = {0, 0}, .env = off});
}

TEST_F(CudaProcesses, OverOtherTransportsUseHostMemory) {
  const auto tcp = [](int) { return ranks::Env{{"TRESTLE_TRANSPORT", "tcp"}}; };
  run_case({.devices = {0, 0}, .in_place = false, .env = tcp});
}

// Each allocation in turn finds no memory, on one rank: the communicator is made without paths, or not at all.
TEST_F(CudaProcesses, WithoutMemoryDoWithoutPathsOrSaySo) {
  agree_without_memory({0, 0}, kCount, 12);
}

// The sender's data lies on a device, the receiver waits for host memory: both are told, and nothing is left unsaid.
TEST_F(CudaProcesses, RefuseMessagesWhoseEndsAreInDifferentPlaces) {
  run_processes(2, [](Process& process) {
    ProcessRank rank(process, 0);
    rank.join(ranks::config_of({}));
    std::vector<float> host(kCount, -1);
    trestleResult_t result = process.rank == 0
                                 ? trestleSend(rank.send(), kCount, trestleFloat32, 1, rank.comm(), rank.stream())
                                 : trestleRecv(host.data(), kCount, trestleFloat32, 0, rank.comm(), nullptr);
    if (result == trestleSuccess) result = trestleCommSynchronize(rank.comm());
    if (result == trestleSuccess) result = trestleStreamSynchronize(rank.stream());
    EXPECT_NE(result, trestleSuccess);
    const std::string said = trestleGetLastError(rank.comm());
    EXPECT_TRUE(ranks::contains(said, "data in device memory") && ranks::contains(said, "data in host memory")) << said;
    EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
  });
}

// Paths within processes and between them in one call: two processes with two rank threads each, on two devices.
TEST_F(CudaProcesses, WithSeveralRanksEachUseBothKindsOfPaths) {
  run_threads([](Gpu& gpu, Process& process, int thread) {
    sum_on(gpu, thread, 2 * process.rank + thread, 4, process.board.id);
  });
}

// A rank without a device takes part in calls on host memory, and in none of the paths.
TEST_F(CudaProcesses, BesideARankWithoutADeviceAddHostMemory) {
  run_processes(3, [](Process& process) {
    ProcessRank rank(process, 0);
    rank.join(ranks::config_of({}), process.rank == 1 ? -1 : 0);
    std::vector<float> host(kCount, static_cast<float>(1 << process.rank));
    for (int again = 0; again < 2; ++again) {
      std::fill(host.begin(), host.end(), static_cast<float>(1 << process.rank));
      ASSERT_TRUE(succeeded(
          trestleAllReduce(host.data(), host.data(), kCount, trestleFloat32, trestleSum, rank.comm(), nullptr)));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(rank.comm())));
      EXPECT_EQ(std::count(host.begin(), host.end(), 7.0F), static_cast<long>(kCount));
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
  });
}

// Outboxes on devices, opened by descriptors and by tickets, and in host memory.
const ranks::Env kWays[] = {{}, {{"FAKE_DRIVER_WITHOUT_DESCRIPTORS", "1"}}, {{"TRESTLE_PEER_ACCESS", "0"}}};

TEST_F(CudaProcesses, UseTheirOutboxesAgain) {
  for (const ranks::Env& env : kWays) use_memory_again({0, 0}, kCount, env);
}

// The survivors end with a sentence, and so does whoever waits for a stream.
void end_when_one_dies(const ranks::Env& env) {
  const auto body = [](Process& process) {
    ProcessRank rank(process, 0);
    rank.join(ranks::config_of({}));
    rank.run_all();
    ranks::meet(process.board, 3);
    if (process.rank == 2) ::raise(SIGKILL);
    trestleResult_t result = trestleSuccess;
    while (result == trestleSuccess) {
      result =
          trestleAllReduce(rank.send(), rank.recv(), kCount, trestleFloat32, trestleSum, rank.comm(), rank.stream());
      if (result == trestleSuccess) result = trestleStreamSynchronize(rank.stream());
    }
    EXPECT_EQ(result, trestleRemoteError);
    EXPECT_TRUE(ranks::contains(trestleGetLastError(rank.comm()), "rank 2")) << trestleGetLastError(rank.comm());
    EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
  };
  run_processes(3, body, [&env](int) { return env; }, {2});
}

TEST_F(CudaProcesses, EndWhenOneOfThemDies) {
  for (const ranks::Env& env : kWays) end_when_one_dies(env);
}

// Short messages go before the receiver waits for them, whether there is an outbox or not.
TEST_F(CudaProcesses, SendShortMessagesBeforeTheyAreReceived) {
  const auto body = [](Process& process) {
    ProcessRank rank(process, 0);
    rank.join(ranks::config_of({}));
    const int peer = 1 - process.rank;
    for (const size_t count : {1, 1500, 4000}) {
      std::fill_n(rank.send(), count, static_cast<float>(process.rank));
      ASSERT_TRUE(succeeded(trestleSend(rank.send(), count, trestleFloat32, peer, rank.comm(), rank.stream())));
      ASSERT_TRUE(succeeded(trestleRecv(rank.recv(), count, trestleFloat32, peer, rank.comm(), rank.stream())));
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream())));
      EXPECT_EQ(rank.recv()[count - 1], static_cast<float>(peer));
    }
    rank.end();
  };
  run_processes(2, body, [](int) { return ranks::Env{{"TRESTLE_PEER_ACCESS", "0"}}; });
}

}  // namespace
}  // namespace cuda_processes_test
}  // namespace fake_gpu
