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
const ranks::Env kInfo{{"TRESTLE_DEBUG", "INFO"}};
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

using CudaBoardProcesses = Processes;

// Every collective, alone and twice in a row, and communicators one after the other.
void run_case(const Case& what) {
  const auto body = [&](Process& process) {
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
  ranks::Env env = what.env;
  env["TRESTLE_DEBUG"] = "INFO";
  const auto outcomes = run_processes(static_cast<int>(what.devices.size()), body, [&](int) { return env; });
  EXPECT_TRUE(ranks::contains(outcomes[0].output, what.says)) << outcomes[0].output;
  EXPECT_EQ(ranks::contains(outcomes[0].output, kMade), what.over_board) << outcomes[0].output;
}

TEST_F(CudaBoardProcesses, WithDevicesOfTheirOwnRunOneKernelEach) {
  run_case({.devices = {0, 1}});
  run_case({.devices = {0, 1}, .env = {{"FAKE_DRIVER_WITHOUT_DESCRIPTORS", "1"}}});
}

// The call that proves a board is no longer than others.
TEST_F(CudaBoardProcesses, WithFewBytesRunOneKernelEach) {
  for (const char* const bytes : {"8", "16", "248"}) {
    const ranks::Env env{{"TRESTLE_DEVICE_EXPRESS_BYTES", bytes}, {"TRESTLE_DEVICE_EXPRESS_PROCESSES", "on"}};
    run_case({.devices = {0, 1}, .env = env, .count = 2});
    run_case({.devices = {0, 1, 1}, .env = env, .count = 2});
  }
}

// A kernel that waits must not keep another process from a device. The user may want it all the same.
TEST_F(CudaBoardProcesses, OfOneDeviceSendMessagesUnlessTheUserSaysOtherwise) {
  run_case({.devices = {0, 0}, .over_board = false, .says = "is also that of another process"});
  run_case({.devices = {0, 1, 1}, .over_board = false, .says = "is also that of another process"});
  const ranks::Env on{{"TRESTLE_DEVICE_EXPRESS_PROCESSES", "on"}};
  run_case({.devices = {0, 0}, .env = on});
  run_case({.devices = {0, 1, 0, 1, 1}, .env = on});
}

TEST_F(CudaBoardProcesses, SendMessagesWhereTheUserSaysSo) {
  run_case({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_DEVICE_EXPRESS_PROCESSES", "off"}}});
  run_case({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_DEVICE_EXPRESS_BYTES", "0"}}});
  run_case({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_PEER_ACCESS", "0"}}});
  run_case({.devices = {0, 1}, .over_board = false, .env = {{"TRESTLE_TRANSPORT", "tcp"}}});
  run_case({.devices = {0, 1},
            .over_board = false,
            .env = {{"CUDA_LAUNCH_BLOCKING", "1"}},
            .says = "go as messages: CUDA_LAUNCH_BLOCKING=1"});
}

// A path that is good for reading may be bad for writing. The call that proves the board finds out.
TEST_F(CudaBoardProcesses, WhoseDevicesWriteOtherBytesSendMessages) {
  for (const int broken : {0, 1}) {
    run_case({.devices = {0, 1},
              .over_board = false,
              .before = [broken](int rank) { driver().break_peer_writes(rank == broken); },
              .says = broken == 1 ? "go as messages: a device has received other bytes than that of rank 1"
                                  : "go as messages: rank 1"});
  }
}

TEST_F(CudaBoardProcesses, WhoseDevicesWriteNothingSendMessages) {
  run_case({.devices = {0, 1},
            .over_board = false,
            .before = [](int rank) { driver().lose_peer_writes(rank == 1); },
            .says = "go as messages: lines of other ranks did not arrive in time"});
}

TEST_F(CudaBoardProcesses, WhoseMemoryIsNotReachedSendMessages) {
  run_case({.devices = {0, 1}, .over_board = false, .before = [](int) { driver().set_peer_access(false); }});
  run_case({.devices = {0, 1}, .over_board = false, .before = [](int rank) {
              driver().set_descriptors(false);
              if (rank == 0) driver().allocate_from_pools(true);
            }});
}

// Ranks of a process share its device, and its kernels run at the same time.
TEST_F(CudaBoardProcesses, WithSeveralRanksEachShareTheDeviceOfTheirProcess) {
  const auto outcomes = run_threads(
      [](Gpu& gpu, Process& process, int thread) {
        sum_on(gpu, process.rank, 2 * process.rank + thread, 4, process.board.id, kFew);
        EXPECT_TRUE(last_was_of_board());
      },
      {}, kInfo);
  EXPECT_TRUE(ranks::contains(outcomes[0].output, kMade)) << outcomes[0].output;
}

// A kernel that waits for a rank must not run while this one makes what it needs.
TEST_F(CudaBoardProcesses, AreMadeWhileCallsOfTheDriverWaitForAllWork) {
  std::barrier both(2);
  const auto make = [&both](Gpu&, Process& process, int thread) {
    trestleConfig_t config = ranks::config_of({});
    config.device = process.rank;
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(trestleCommInitRankConfig(&comm, 4, process.board.id, 2 * process.rank + thread, &config)));
    both.arrive_and_wait();
    driver().let_slow_calls_wait(false);
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  const auto outcomes = run_threads(
      make, [] { driver().let_slow_calls_wait(true); }, kInfo);
  EXPECT_TRUE(ranks::contains(outcomes[0].output, kMade)) << outcomes[0].output;
}

TEST_F(CudaBoardProcesses, UseTheirMemoryAgain) {
  use_memory_again({0, 1}, kFew);
}

TEST_F(CudaBoardProcesses, UseTheMemoryOfABoardThatWasNotMadeAgain) {
  use_memory_again({0, 1}, kFew, {}, [] { driver().break_peer_writes(true); });
}

// ---- wrong calls, failures

// Runs the calls of two ranks on devices of their own. after: what each does when the communicator is made.
void run_two(int64_t timeout_ms, const std::function<void(ProcessRank&, Process&)>& after,
             const std::vector<int>& dead = {}) {
  const auto body = [&](Process& process) {
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
  run_processes(2, body, {}, dead);
}

TEST_F(CudaBoardProcesses, CallsThatDifferAreNamed) {
  run_two(60'000, [](ProcessRank& rank, Process& process) {
    const size_t count = kFew - static_cast<size_t>(process.rank);
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), count, rank.comm(), rank.stream())));
    EXPECT_NE(trestleStreamSynchronize(rank.stream()), trestleSuccess);
    const std::string said = trestleGetLastError(rank.comm());
    EXPECT_TRUE(ranks::contains(said, "as allreduce of float, sum")) << said;
    ranks::meet(process.board, 2);
  });
}

TEST_F(CudaBoardProcesses, ARankThatDoesNotCallIsNamed) {
  run_two(ranks::patient_ms(2, 300), [](ProcessRank& rank, Process& process) {
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
      EXPECT_EQ(trestleStreamSynchronize(rank.stream()), trestleTimeout);
      const std::string said = trestleGetLastError(rank.comm());
      EXPECT_TRUE(ranks::contains(said, "rank 1")) << said;
    }
    ranks::meet(process.board, 2);
  });
}

TEST_F(CudaBoardProcesses, ARankThatDiesIsNamed) {
  run_two(60'000,
          [](ProcessRank& rank, Process& process) {
            if (process.rank == 1) ::raise(SIGKILL);
            // The rank may be known to be dead already.
            trestleResult_t result = all_reduce(rank.recv(), kFew, rank.comm(), rank.stream());
            if (result == trestleSuccess) result = trestleStreamSynchronize(rank.stream());
            EXPECT_EQ(result, trestleRemoteError);
            const std::string said = trestleGetLastError(rank.comm());
            EXPECT_TRUE(ranks::contains(said, "rank 1")) << said;
          },
          {1});
}

TEST_F(CudaBoardProcesses, AnAbortEndsTheOthersCalls) {
  run_two(60'000, [](ProcessRank& rank, Process& process) {
    std::atomic<int64_t>& has_called = process.board.word[0];
    if (process.rank == 1) return ranks::wait_until([&] { return has_called.load() != 0; });
    ASSERT_TRUE(succeeded(all_reduce(rank.recv(), kFew, rank.comm(), rank.stream())));
    has_called = 1;
    EXPECT_NE(trestleStreamSynchronize(rank.stream()), trestleSuccess);
  });
}

// A rank that leaves in order is told of, if another one still waits for it.
TEST_F(CudaBoardProcesses, ARankThatLeftIsNamed) {
  run_processes(2, [](Process& process) {
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
  });
}

// Each allocation in turn finds no memory, on one rank: the communicator is made without a board, or not at all.
TEST_F(CudaBoardProcesses, WithoutMemorySendMessagesOrSaySo) {
  agree_without_memory({0, 1}, kFew, 8);
}

// A call of the driver fails on one rank, in the second half of the setup: all ranks have a board, or none, or no
// communicator.
TEST_F(CudaBoardProcesses, AgreeWhateverCallOfTheDriverFails) {
  int without = 0, refused = 0;
  for (int before_end = 0; before_end < 150; before_end += 4) {
    SCOPED_TRACE("call " + std::to_string(before_end) + " before the last");
    const auto outcomes = run_processes(2, [before_end](Process& process) {
      ProcessRank rank(process, process.rank, kFew);
      rank.join(ranks::config_of({}));  // opens the device and loads the kernels
      const trestleComm_t first = rank.comm();
      ranks::drop_id(process);
      const int calls = driver().calls();
      rank.join(ranks::config_of({}));
      const int calls_of_setup = driver().calls() - calls;
      EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm())));
      ranks::drop_id(process);
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
    });
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
