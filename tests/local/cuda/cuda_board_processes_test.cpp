// Small collectives on memory of devices among ranks in processes of their own: one kernel per rank, where the devices
// differ; where they go another way; and what wrong calls and failures come to.
#include <atomic>
#include <barrier>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "local/cuda/process_rank.h"

namespace fake_gpu {
namespace cuda_board_processes_test {
namespace {

constexpr size_t kFew = 1200;
constexpr const char* kMade = "on memory of devices are one kernel of each rank";

bool last_was_of_board() {
  return driver().launched().find("board_") != std::string::npos;
}

struct Case {
  std::vector<int> devices;
  bool over_board = true;
  ranks::Env env{};
  std::function<void(int rank)> before{};
  size_t count = kFew;
  std::string says{};  // rank 0's log
};

// Every collective, alone and twice in a row, and communicators one after the other.
void run_processes(const Case& what) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  ranks::Job job;
  job.ranks = static_cast<int>(what.devices.size());
  job.env = [&](int) {
    ranks::Env env = what.env;
    env["TRESTLE_DEBUG"] = "INFO";
    return env;
  };
  job.body = [&](Process& process) {
    if (what.before) what.before(process.rank);
    ProcessRank rank(process, what.devices[static_cast<size_t>(process.rank)], what.count);
    rank.join(ranks::config_of({}));
    rank.run_all();
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), what.count, rank.comm(), rank.stream())));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream())));
    EXPECT_EQ(last_was_of_board(), what.over_board);
    rank.end();
    EXPECT_EQ(driver().objects().opened, 0);
    EXPECT_EQ(driver().misuse(), "");
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  EXPECT_TRUE(ranks::contains(outcomes[0].output, what.says)) << outcomes[0].output;
  EXPECT_EQ(ranks::contains(outcomes[0].output, kMade), what.over_board) << outcomes[0].output;
}

TEST(CudaBoardProcesses, WithDevicesOfTheirOwnRunOneKernelEach) {
  run_processes({.devices = {0, 1}});
  run_processes({.devices = {0, 1}, .env = {{"FAKE_DRIVER_WITHOUT_DESCRIPTORS", "1"}}});
}

// The call that proves a board is no longer than others.
TEST(CudaBoardProcesses, WithFewBytesRunOneKernelEach) {
  for (const char* const bytes : {"8", "16", "248"}) {
    const ranks::Env env{{"TRESTLE_DEVICE_EXPRESS_BYTES", bytes}, {"TRESTLE_DEVICE_EXPRESS_PROCESSES", "on"}};
    run_processes({.devices = {0, 1}, .env = env, .count = 2});
    run_processes({.devices = {0, 1, 1}, .env = env, .count = 2});
  }
}

// A kernel that waits must not keep another process from a device. The user may want it all the same.
TEST(CudaBoardProcesses, OfOneDeviceSendMessagesUnlessTheUserSaysOtherwise) {
  run_processes({.devices = {0, 0}, .over_board = false, .says = "is also that of another process"});
  run_processes({.devices = {0, 1, 1}, .over_board = false, .says = "is also that of another process"});
  const ranks::Env on{{"TRESTLE_DEVICE_EXPRESS_PROCESSES", "on"}};
  run_processes({.devices = {0, 0}, .env = on});
  run_processes({.devices = {0, 1, 0, 1, 1}, .env = on});
}

TEST(CudaBoardProcesses, SendMessagesWhereTheUserSaysSo) {
  run_processes({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_DEVICE_EXPRESS_PROCESSES", "off"}}});
  run_processes({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_DEVICE_EXPRESS_BYTES", "0"}}});
  run_processes({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_PEER_ACCESS", "0"}}});
  run_processes({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_TRANSPORT", "tcp"}}});
  run_processes({.devices = {0, 1},
                 .over_board = false,
                 .env = {{"CUDA_LAUNCH_BLOCKING", "1"}},
                 .says = "go as messages: CUDA_LAUNCH_BLOCKING=1"});
}

// A path that is good for reading may be bad for writing. The call that proves the board finds out.
TEST(CudaBoardProcesses, WhoseDevicesWriteOtherBytesSendMessages) {
  for (const int broken : {0, 1}) {
    run_processes({.devices = {0, 1},
                   .over_board = false,
                   .before = [broken](int rank) { driver().break_peer_writes(rank == broken); },
                   .says = broken == 1 ? "go as messages: a device has received other bytes than that of rank 1"
                                       : "go as messages: rank 1"});
  }
}

TEST(CudaBoardProcesses, WhoseDevicesWriteNothingSendMessages) {
  run_processes({.devices = {0, 1},
                 .over_board = false,
                 .before = [](int rank) { driver().lose_peer_writes(rank == 1); },
                 .says = "go as messages: lines of other ranks did not arrive in time"});
}

TEST(CudaBoardProcesses, WhoseMemoryIsNotReachedSendMessages) {
  run_processes({.devices = {0, 1}, .over_board = false, .before = [](int) { driver().set_peer_access(false); }});
  run_processes({.devices = {0, 1}, .over_board = false, .before = [](int rank) {
                   driver().set_descriptors(false);
                   if (rank == 0) driver().allocate_from_pools(true);
                 }});
}

// Two processes with two ranks each. body: of a rank's thread.
void run_threads(const std::function<void(Gpu& gpu, Process& process, int thread)>& body, bool slow_calls_wait) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  ranks::Job job;
  job.ranks = 2;
  job.env = [](int) { return ranks::Env{{"TRESTLE_DEBUG", "INFO"}}; };
  job.body = [&](Process& process) {
    Gpu gpu;
    driver().let_slow_calls_wait(slow_calls_wait);
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(trestleGetUniqueId(&process.board.id)));
      process.board.id_written = 1;
    }
    ranks::wait_until([&] { return process.board.id_written.load() != 0; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&, t] { body(gpu, process, t); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver().misuse(), "");
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  EXPECT_TRUE(ranks::contains(outcomes[0].output, kMade)) << outcomes[0].output;
}

// Ranks of a process share its device, and its kernels run at the same time.
TEST(CudaBoardProcesses, WithSeveralRanksEachShareTheDeviceOfTheirProcess) {
  run_threads(
      [](Gpu& gpu, Process& process, int thread) {
        sum_on(gpu, process.rank, 2 * process.rank + thread, 4, process.board.id, kFew);
        EXPECT_TRUE(last_was_of_board());
      },
      false);
}

// A kernel that waits for a rank must not run while this one makes what it needs.
TEST(CudaBoardProcesses, AreMadeWhileCallsOfTheDriverWaitForAllWork) {
  std::barrier both(2);
  run_threads(
      [&both](Gpu&, Process& process, int thread) {
        trestleConfig_t config = ranks::config_of({});
        config.device = process.rank;
        trestleComm_t comm = nullptr;
        ASSERT_TRUE(
            succeeded(trestleCommInitRankConfig(&comm, 4, process.board.id, 2 * process.rank + thread, &config)));
        both.arrive_and_wait();
        driver().let_slow_calls_wait(false);
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      },
      true);
}

// The memory of one communicator serves the next one, once all have left it. broken: there is no board in the end.
void use_memory_again(bool broken) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  ranks::Job job;
  job.ranks = 2;
  job.body = [broken](Process& process) {
    driver().break_peer_writes(broken);
    int after_first = 0;
    for (int round = 0; round < 4; ++round) {
      ProcessRank rank(process, process.rank, kFew);
      rank.join(ranks::config_of({}));
      ranks::meet(process.board, 2);
      process.board.id_written = 0;
      ranks::meet(process.board, 2);
      rank.run_all();
      rank.end();
      ranks::meet(process.board, 2);
      EXPECT_EQ(driver().objects().opened, 0);
      if (round == 0) after_first = driver().objects().memory;
      EXPECT_EQ(driver().objects().memory, after_first + 2 * round) << "but for the buffers of this test";
    }
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(CudaBoardProcesses, UseTheirMemoryAgain) {
  use_memory_again(false);
}

TEST(CudaBoardProcesses, UseTheMemoryOfABoardThatWasNotMadeAgain) {
  use_memory_again(true);
}

// ---- wrong calls, failures

// Runs the calls of two ranks on devices of their own. after: what each does when the communicator is made.
std::vector<ranks::Outcome> run_two(int64_t timeout_ms, const std::function<void(ProcessRank&, Process&)>& after) {
  ranks::Job job;
  job.ranks = 2;
  job.body = [&](Process& process) {
    ProcessRank rank(process, process.rank, kFew);
    rank.join(ranks::config_of({.timeout_ms = timeout_ms}));
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream())));
    ASSERT_TRUE(last_was_of_board());
    ranks::meet(process.board, 2);
    after(rank, process);
    EXPECT_TRUE(succeeded(trestleCommAbort(rank.comm())));
    // Its kernel was let go.
    EXPECT_TRUE(succeeded(trestleStreamDestroy(rank.stream())));
    rank.await_idle();
  };
  return ranks::run(job);
}

TEST(CudaBoardProcesses, CallsThatDifferAreNamed) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  const auto outcomes = run_two(60'000, [](ProcessRank& rank, Process& process) {
    const size_t count = kFew - static_cast<size_t>(process.rank);
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), count, rank.comm(), rank.stream())));
    EXPECT_NE(trestleStreamSynchronize(rank.stream()), trestleSuccess);
    const std::string said = trestleGetLastError(rank.comm());
    EXPECT_TRUE(ranks::contains(said, "as allreduce of float, sum")) << said;
    ranks::meet(process.board, 2);
  });
  ranks::expect_ended_well(outcomes);
}

TEST(CudaBoardProcesses, ARankThatDoesNotCallIsNamed) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  const auto outcomes = run_two(300, [](ProcessRank& rank, Process& process) {
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
      EXPECT_EQ(trestleStreamSynchronize(rank.stream()), trestleTimeout);
      const std::string said = trestleGetLastError(rank.comm());
      EXPECT_TRUE(ranks::contains(said, "rank 1")) << said;
    }
    ranks::meet(process.board, 2);
  });
  ranks::expect_ended_well(outcomes);
}

TEST(CudaBoardProcesses, ARankThatDiesIsNamed) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  const auto outcomes = run_two(60'000, [](ProcessRank& rank, Process& process) {
    if (process.rank == 1) ::raise(SIGKILL);
    // The rank may be known to be dead already.
    trestleResult_t result = all_reduce(rank.recv(), kFew, rank.comm(), rank.stream());
    if (result == trestleSuccess) result = trestleStreamSynchronize(rank.stream());
    EXPECT_EQ(result, trestleRemoteError);
    const std::string said = trestleGetLastError(rank.comm());
    EXPECT_TRUE(ranks::contains(said, "rank 1")) << said;
  });
  ranks::expect_ended_well(outcomes, {1});
}

TEST(CudaBoardProcesses, AnAbortEndsTheOthersCalls) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  const auto outcomes = run_two(60'000, [](ProcessRank& rank, Process& process) {
    std::atomic<int64_t>& has_called = process.board.word[0];
    if (process.rank == 1) return ranks::wait_until([&] { return has_called.load() != 0; });
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
    has_called = 1;
    EXPECT_NE(trestleStreamSynchronize(rank.stream()), trestleSuccess);
  });
  ranks::expect_ended_well(outcomes);
}

// A rank that leaves in order is told of, if another one still waits for it.
TEST(CudaBoardProcesses, ARankThatLeftIsNamed) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  ranks::Job job;
  job.ranks = 2;
  job.body = [](Process& process) {
    ProcessRank rank(process, process.rank, kFew);
    rank.join(ranks::config_of({}));
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
      EXPECT_EQ(trestleStreamSynchronize(rank.stream()), trestleRemoteError);
      const std::string said = trestleGetLastError(rank.comm());
      EXPECT_TRUE(ranks::contains(said, "rank 1")) << said;
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
    EXPECT_TRUE(succeeded(trestleStreamDestroy(rank.stream())));
    rank.await_idle();
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Each allocation in turn finds no memory, on one rank: the communicator is made without a board, or not at all.
TEST(CudaBoardProcesses, WithoutMemorySendMessagesOrSaySo) {
  agree_without_memory({0, 1}, kFew, 8);
}

// A call of the driver fails on one rank, in the second half of the setup: all ranks have a board, or none, or no
// communicator.
TEST(CudaBoardProcesses, AgreeWhateverCallOfTheDriverFails) {
  if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  int without = 0, refused = 0;
  for (int before_end = 0; before_end < 150; before_end += 4) {
    SCOPED_TRACE("call " + std::to_string(before_end) + " before the last");
    ranks::Job job;
    job.ranks = 2;
    job.body = [before_end](Process& process) {
      ProcessRank rank(process, process.rank, kFew);
      const auto next_id = [&] {
        ranks::meet(process.board, 2);
        process.board.id_written = 0;
        ranks::meet(process.board, 2);
      };
      rank.join(ranks::config_of({}));  // opens the device and loads the kernels
      const trestleComm_t first = rank.comm();
      next_id();
      const int calls = driver().calls();
      rank.join(ranks::config_of({}));
      const int calls_of_setup = driver().calls() - calls;
      EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
      next_id();
      if (process.rank == 1) driver().fail(calls_of_setup - before_end, 999);
      const trestleResult_t joined = rank.try_join(ranks::config_of({}));
      driver().fail(1 << 30, 0);
      process.result = "refused";
      if (joined == trestleSuccess) {
        rank.run_all();
        process.result = last_was_of_board() ? "board" : "messages";
        rank.end();
      }
      EXPECT_TRUE(succeeded(trestleCommDestroy(first)));
    };
    const auto outcomes = ranks::run(job);
    ranks::expect_ended_well(outcomes);
    EXPECT_EQ(outcomes[0].result, outcomes[1].result);
    without += outcomes[0].result == "messages" ? 1 : 0;
    refused += outcomes[0].result == "refused" ? 1 : 0;
  }
  EXPECT_GT(without, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cuda_board_processes_test
}  // namespace fake_gpu
