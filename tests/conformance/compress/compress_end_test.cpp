// The end of a compressed all-reduce: a rank that dies, a deadline, an abort, a fork. Every call ends with the
// communicator's sentence, and the residual has what was not sent.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "conformance/compress/compress_oracle.h"

namespace compressed {
namespace {

using ranks::refused;
using ranks::succeeded;

void expect_ended(trestleTopK_t topk, trestleComm_t comm, trestleResult_t code, const std::vector<std::string>& facts) {
  Floats gradient(1000, 2), residual(1000, 1), result(1000);
  const uint64_t steps = stats_of(topk).steps;
  EXPECT_TRUE(refused(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), code, facts, comm));
  EXPECT_EQ(residual, Floats(1000, 3)) << "all of the gradient";
  EXPECT_EQ(stats_of(topk).steps, steps);
  EXPECT_TRUE(refused(trestleTopKFit(topk), code, facts, comm));
  EXPECT_TRUE(refused(trestleTopKSetRatio(topk, 0.5), code, facts, comm));
  trestleTopK_t other = nullptr;
  EXPECT_TRUE(refused(trestleTopKCreate(&other, comm, 10, nullptr), code, facts, comm));
  EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
}

bool has_failed(trestleComm_t comm) {
  trestleResult_t failure = trestleSuccess;
  return trestleCommGetAsyncError(comm, &failure) != trestleSuccess || failure != trestleSuccess;
}

TEST(CompressedEnd, ARankThatDiesEndsEveryCall) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const int method : {trestleTopKStar, trestleTopKVar, trestleTopKExact}) {
      SCOPED_TRACE(testing::Message() << transport << ", " << method);
      ranks::joined({.ranks = 3, .transport = transport}, [&](ranks::Process& process, trestleComm_t comm) {
        trestleTopK_t topk = make(comm, {3, 1000, 0.2, method});
        Floats residual(1000), result(1000);
        for (uint64_t step = 1; step <= 4; ++step) {
          const Floats gradient = gradient_of(process.rank, step, 1000);
          ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
        }
        ranks::meet(process.board, 3);  // else the others may not have ended their step
        if (process.rank == 1) ::_exit(0);
        const Floats gradient(1000, 1);
        EXPECT_TRUE(refused(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk),
                            trestleRemoteError, {"rank 1"}, comm));
        ranks::wait_until([&] { return has_failed(comm); });
        expect_ended(topk, comm, trestleRemoteError, {"rank 1"});
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      });
    }
  }
}

TEST(CompressedEnd, ADeadlineEndsTheCall) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "shm", .timeout_ms = 500});
  ranks::on_threads(settings, [](int rank, trestleComm_t comm) {
    trestleTopK_t topk = make(comm, {2, 1000, 0.2, trestleTopKExact});
    if (rank == 0) {
      Floats gradient(1000, 1), residual(1000), result(1000);
      EXPECT_TRUE(refused(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), trestleTimeout,
                          {"rank 1"}, comm));
      EXPECT_EQ(residual, gradient);
      expect_ended(topk, comm, trestleTimeout, {"rank 1"});
      return;
    }
    ranks::wait_until([&] { return has_failed(comm); });
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

TEST(CompressedEnd, AnAbortEndsTheCall) {
  ranks::joined({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
    trestleTopK_t topk = make(comm, {2, 1000, 0.2, trestleTopKVar});
    ranks::meet(process.board, 2);
    if (process.rank == 1) {
      EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
      return;
    }
    Floats gradient(1000, 1), residual(1000), result(1000);
    EXPECT_TRUE(refused(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), trestleAborted,
                        {"rank 1"}, comm));
    expect_ended(topk, comm, trestleAborted, {"rank 1"});
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

uint64_t all_gathers(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(succeeded(trestleCommGetStats(comm, &stats)));
  return stats.collective[trestleCollAllGather].started;
}

// The handle takes no calls any more, but the call that waits is completed by the other rank. Its messages are too long
// for the path of small calls, which count only when they are complete.
TEST(CompressedEnd, DestroyWaitsForACallOfAnotherThread) {
  ranks::Job job{.ranks = 2};
  job.body = [](ranks::Process& process) {
    constexpr size_t kCount = 1'000'000;
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
    trestleTopK_t topk = make(comm, {2, kCount, 1, trestleTopKExact});
    Floats gradient(kCount, 1), residual(kCount), result(kCount);
    const auto step = [&] { return trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk); };
    if (process.rank == 0) {
      const uint64_t before = all_gathers(comm);
      std::thread waits([&] { EXPECT_TRUE(succeeded(step(), comm)); });
      ranks::wait_until([&] { return all_gathers(comm) > before; });
      std::thread ends([&] { EXPECT_TRUE(succeeded(trestleTopKDestroy(topk))); });
      trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
      ranks::wait_until([&] { return trestleTopKGetStats(topk, &stats) == trestleInvalidUsage; });
      ranks::meet(process.board, 2);
      waits.join();
      ends.join();
      EXPECT_EQ(result, gradient);
    } else {
      ranks::meet(process.board, 2);
      EXPECT_TRUE(succeeded(step(), comm));
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(CompressedEnd, AForkedChildRefusesIt) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleTopK_t topk = make(comm, {1, 10, 0.5});
    Floats gradient(10, 1), residual(10);
    const pid_t child = ::fork();
    if (child == 0) {
      const bool right =
          trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk) == trestleInvalidUsage &&
          ranks::contains(trestleGetLastError(nullptr), "before fork()") &&
          trestleTopKDestroy(topk) == trestleInvalidUsage;
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk), comm));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

}  // namespace
}  // namespace compressed
