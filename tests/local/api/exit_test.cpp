// Processes that exit without CommDestroy. After all work is done that is no failure for other ranks. Before that it is
// one, and its sentence names the rank, its end and the pending work. blame_test.cpp tests killed processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace exit_test {
namespace {

using ranks::contains;
using ranks::refused;
using ranks::succeeded;

constexpr int64_t kDeadlineMs = 300'000;
constexpr int kWatchdogS = 120;  // shorter than the deadline
constexpr size_t kCount = size_t{1} << 20;

// Exits like a program that returns from main.
[[noreturn]] void exit_now() {
  std::cout.flush();
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

std::vector<ranks::Settings> everywhere(int ranks) {
  std::vector<ranks::Settings> all;
  for (const char* transport : {"shm", "tcp", ""}) {
    all.push_back({.ranks = ranks, .transport = transport, .timeout_ms = kDeadlineMs});
  }
  return all;
}

void run_job(const ranks::Settings& settings, const std::function<void(ranks::Process&, trestleComm_t)>& body) {
  SCOPED_TRACE(testing::Message() << settings);
  ranks::joined(
      settings,
      [&](ranks::Process& process, trestleComm_t comm) {
        // A rank that exits while others still join fails their CommInitRank. Another test covers that.
        ranks::meet(process.board, settings.ranks);
        body(process, comm);
      },
      {}, kWatchdogS);
}

void all_reduce(trestleComm_t comm, size_t count) {
  std::vector<float> data(count, 1.0f);
  ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), count, trestleFloat32, trestleSum, comm, nullptr)));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
}

// Rank 0 exits as soon as its own Finalize has succeeded.
TEST(ApiExit, AfterFinalizeFailsNobodysFinalize) {
  for (int round = 0; round < 5; ++round) {
    for (const ranks::Settings& settings : everywhere(4)) {
      run_job(settings, [](ranks::Process& process, trestleComm_t comm) {
        all_reduce(comm, 1000);
        ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
        if (process.rank == 0) exit_now();
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      });
    }
  }
}

// Others may still be in the barrier that it has passed.
TEST(ApiExit, AfterABarrierFailsNobodysBarrier) {
  for (int round = 0; round < 5; ++round) {
    for (const ranks::Settings& settings : everywhere(5)) {
      run_job(settings, [](ranks::Process& process, trestleComm_t comm) {
        all_reduce(comm, kCount);
        ASSERT_TRUE(succeeded(trestleBarrier(comm, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        if (process.rank % 2 == 0) exit_now();
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      });
    }
  }
}

void wait_for_failure(trestleComm_t comm) {
  trestleResult_t state = trestleSuccess;
  ranks::wait_until(
      [&] { return trestleCommGetAsyncError(comm, &state) != trestleSuccess || state != trestleSuccess; });
}

// Rank 1 exits within an all-reduce that rank 0 has not called. Rank 2 waits in it.
void expect_exit_is_told(const ranks::Settings& settings, const std::function<void(trestleComm_t)>& exit_within) {
  run_job(settings, [&](ranks::Process& process, trestleComm_t comm) {
    std::vector<float> data(kCount, 1.0f);
    const auto call = [&] {
      return trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
    };
    if (process.rank == 1) {
      ASSERT_TRUE(succeeded(call(), comm));
      exit_within(comm);
    }
    trestleResult_t result = trestleSuccess;
    if (process.rank == 0) {
      wait_for_failure(comm);
      result = call();
    } else {
      result = call();
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
    }
    EXPECT_TRUE(refused(result, trestleRemoteError,
                        {"rank 1 (", "exited without CommDestroy while operation 0 (allreduce"}, comm));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

TEST(ApiExit, InTheMiddleIsToldWithWhatWasUnderWay) {
  for (const ranks::Settings& settings : everywhere(3)) {
    expect_exit_is_told(settings, [](trestleComm_t) { exit_now(); });
  }
}

TEST(ApiExit, OfOneThreadWhileAnotherOneWaitsInACall) {
  for (const ranks::Settings& settings : everywhere(3)) {
    expect_exit_is_told(settings, [](trestleComm_t comm) {
      std::thread([] { exit_now(); }).detach();
      (void)trestleCommSynchronize(comm);
      for (;;) pause();
    });
  }
}

// The split may have begun or not, and any rank may notice the exit first.
TEST(ApiExit, WithinCommSplitIsNoDeath) {
  run_job({.ranks = 3, .timeout_ms = kDeadlineMs}, [](ranks::Process& process, trestleComm_t comm) {
    trestleComm_t part = nullptr;
    if (process.rank == 1) {
      std::thread splitter([&] {
        process.board.word[0].store(1);
        (void)trestleCommSplit(comm, 0, 0, &part, nullptr);
        for (;;) pause();
      });
      ranks::wait_until([&] { return process.board.word[0].load() == 1; });
      exit_now();
    }
    if (process.rank == 2) {
      EXPECT_TRUE(refused(trestleCommSplit(comm, 0, 0, &part, nullptr), trestleRemoteError, {"rank 1 ("}, comm));
      const std::string sentence = trestleGetLastError(comm);
      EXPECT_TRUE(contains(sentence, "exited without CommDestroy while CommSplit") ||
                  contains(sentence, "left the communicator"))
          << sentence;
    } else {
      wait_for_failure(comm);
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

// The thread that drives the library and holds its locks calls exit.
int exit_within_reduction(void*, const void* const*, int, size_t, trestleDataType_t, void*) {
  exit_now();
}

// A static object whose destructor runs before the library's exit handler and may use the library.
struct Owner {
  trestleComm_t comm = nullptr;
  ~Owner() {
    if (comm == nullptr) return;
    const bool well = trestleCommSynchronize(comm) == trestleSuccess && trestleCommDestroy(comm) == trestleSuccess;
    const bool refused = trestleCommDestroy(comm) == trestleInvalidUsage && trestleGetLastError(comm) != nullptr;
    if (!well || !refused) _exit(3);
  }
};
Owner owner;

TEST(ApiExit, DestructorsOfStaticObjectsMayDestroyCommunicators) {
  for (const ranks::Settings& settings : everywhere(3)) {
    run_job(settings, [](ranks::Process&, trestleComm_t comm) {
      static float data[kCount];  // static, so that it outlives the call
      owner.comm = comm;
      ASSERT_TRUE(succeeded(trestleAllReduce(data, data, kCount, trestleFloat32, trestleSum, comm, nullptr), comm));
      exit_now();
    });
  }
}

TEST(ApiExit, OfAProcessWithManyCommunicatorsIsAGoodbyeOfEach) {
  run_job({.ranks = 3, .timeout_ms = kDeadlineMs}, [](ranks::Process& process, trestleComm_t comm) {
    std::vector<trestleComm_t> parts(8);
    for (trestleComm_t& part : parts) {
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &part, nullptr), comm));
      all_reduce(part, 100);
      ASSERT_TRUE(succeeded(trestleBarrier(part, nullptr), part));
    }
    ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
    if (process.rank == 0) exit_now();
    for (trestleComm_t part : parts) EXPECT_TRUE(succeeded(trestleCommDestroy(part)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

// A small collective waits on a board that rings no bell. Its waiter is still told of a peer that has left.
TEST(ApiExit, WhoWaitsOnTheBoardHearsThatAPeerHasLeft) {
  for (const bool by_exit : {false, true}) {
    run_job({.ranks = 3, .timeout_ms = kDeadlineMs}, [by_exit](ranks::Process& process, trestleComm_t comm) {
      all_reduce(comm, 1);
      if (process.rank == 1) {
        if (by_exit) exit_now();
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        return;
      }
      float x = 1;
      trestleResult_t result = trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      const std::string how = by_exit ? "exited without CommDestroy" : "has left the communicator";
      EXPECT_TRUE(refused(result, trestleRemoteError, {"rank 1 (", how, "allreduce"}, comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

TEST(ApiExit, WithinAReductionFunctionEndsAndIsTold) {
  for (const char* transport : {"shm", "tcp"}) {
    const ranks::Settings settings{.ranks = 2, .transport = transport, .timeout_ms = kDeadlineMs};
    run_job(settings, [](ranks::Process& process, trestleComm_t comm) {
      trestleRedOp_t op{};
      const auto sum = [](void*, const void* const*, int, size_t, trestleDataType_t, void*) { return 0; };
      ASSERT_TRUE(
          succeeded(trestleRedOpCreate(&op, process.rank == 1 ? exit_within_reduction : +sum, nullptr, 1, comm)));
      std::vector<float> data(kCount, 1.0f);
      trestleResult_t result = trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, op, comm, nullptr);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      EXPECT_TRUE(refused(result, trestleRemoteError, {"rank 1 (", "exited without CommDestroy"}, comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

}  // namespace
}  // namespace exit_test
}  // namespace api
