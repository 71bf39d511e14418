// Processes with connected ranks fork. The child is refused whatever it does with inherited objects, and the
// communicator continues. A rank's death is noticed although its child lives. Children connect with each other.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "local/api/every_call.h"
#include "support/forked.h"
#include "support/ranks.h"

namespace api {
namespace fork_processes_test {
namespace {

using ranks::contains;
using ranks::Forked;
using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

constexpr size_t kCounts[] = {1, 1000, 300'000};

// All-reduces of several sizes, each element verified.
void expect_all_reduce(trestleComm_t comm, int rank, int ranks) {
  for (const size_t count : kCounts) {
    std::vector<int64_t> data(count);
    for (size_t i = 0; i < count; ++i) data[i] = (rank + 1) * static_cast<int64_t>(i + 1);
    ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), count, trestleInt64, trestleSum, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    const int64_t sum = ranks * (ranks + 1) / 2;
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum * static_cast<int64_t>(i + 1)) << i << " of " << count;
  }
}

void refuse_everything(const every_call::Things& things) {
  for (int round = 0; round < 2; ++round) {
    for (const auto& [name, call] : every_call::calls_on(things)) {
      EXPECT_TRUE(refused(call(), trestleInvalidUsage, {name == "MemFree" ? "MemAlloc" : name, "before fork()"}))
          << name;
      EXPECT_TRUE(contains(trestleGetLastError(things.comm), "before fork()")) << name;
    }
  }
}

TEST(ApiForkProcesses, EveryCallOnWhatWasInheritedIsRefused) {
  for (const char* transport : {"shm", "tcp"}) {
    const Settings settings{.ranks = 3, .transport = transport};
    ranks::on_processes(settings, [&](ranks::Process& process, trestleComm_t comm) {
      const every_call::Things things = every_call::make_things(comm);
      expect_all_reduce(comm, process.rank, process.ranks);
      if (process.rank != 2) Forked([&] { refuse_everything(things); }).expect_end();
      expect_all_reduce(comm, process.rank, process.ranks);
      Forked([&] { refuse_everything(things); }).expect_end();
      every_call::free_things(things);
      EXPECT_TRUE(succeeded(trestleCommFinalize(comm), comm));
    });
  }
}

// The rank forks while operations are pending and other ranks are awaited.
TEST(ApiForkProcesses, InTheMiddleOfOperations) {
  for (const char* transport : {"shm", "tcp"}) {
    ranks::on_processes({.ranks = 2, .transport = transport}, [&](ranks::Process& process, trestleComm_t comm) {
      constexpr size_t kCount = size_t{1} << 20;
      for (int round = 0; round < 5; ++round) {
        std::vector<int32_t> data(kCount, process.rank + 1);
        std::vector<int32_t> other(kCount, 10);
        for (std::vector<int32_t>* one : {&data, &other}) {
          ASSERT_TRUE(succeeded(
              trestleAllReduce(one->data(), one->data(), kCount, trestleInt32, trestleSum, comm, nullptr), comm));
        }
        Forked([&] {
          EXPECT_TRUE(refused(trestleCommSynchronize(comm), trestleInvalidUsage, {"before fork()"}));
          EXPECT_TRUE(refused(round % 2 == 0 ? trestleCommDestroy(comm) : trestleCommAbort(comm), trestleInvalidUsage,
                              {"before fork()"}));
        }).expect_end();
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        ASSERT_EQ(data, std::vector<int32_t>(kCount, 3));
        ASSERT_EQ(other, std::vector<int32_t>(kCount, 20));
      }
    });
  }
}

// ---- children connect with each other

TEST(ApiForkProcesses, ChildrenOfTheRanksConnectWithEachOther) {
  for (const char* transport : {"shm", "tcp"}) {
    const Settings settings{.ranks = 3, .transport = transport};
    ranks::on_processes(settings, [&](ranks::Process& process, trestleComm_t comm) {
      expect_all_reduce(comm, process.rank, process.ranks);
      if (process.rank == 0) process.board.id_written = 0;  // the children's id replaces the parents'
      ranks::meet(process.board, process.ranks);
      Forked child([&] {
        trestleComm_t own = nullptr;
        ASSERT_TRUE(succeeded(ranks::join(process, settings, &own)));
        expect_all_reduce(own, process.rank, process.ranks);
        EXPECT_TRUE(refused(trestleCommDestroy(comm), trestleInvalidUsage, {"before fork()"}));
        expect_all_reduce(own, process.rank, process.ranks);
        EXPECT_TRUE(succeeded(trestleCommDestroy(own)));
      });
      for (int i = 0; i < 20; ++i) expect_all_reduce(comm, process.rank, process.ranks);
      child.expect_end();
      expect_all_reduce(comm, process.rank, process.ranks);
    });
  }
}

// Like a server: one process makes the id, and its children are the ranks.
TEST(ApiForkProcesses, TheRanksAreChildrenOfTheProcessThatMadeTheId) {
  for (const bool used_before : {false, true}) {
    ranks::isolated([&] {
      if (used_before) ranks::use_own_communicator(2);
      constexpr int kRanks = 3;
      trestleUniqueId id;
      ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
      std::vector<std::unique_ptr<Forked>> children;
      for (int r = 0; r < kRanks; ++r) {
        children.push_back(std::make_unique<Forked>([&, r] {
          trestleComm_t comm = nullptr;
          ASSERT_TRUE(succeeded(trestleCommInitRank(&comm, kRanks, id, r)));
          expect_all_reduce(comm, r, kRanks);
          EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        }));
      }
      for (const auto& child : children) child->expect_end();
    });
  }
}

// ---- a rank dies while its child lives

enum class Death { kKilled, kEndedWithoutAWord };

[[noreturn]] void die(Death death) {
  if (death == Death::kEndedWithoutAWord) _exit(0);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// If a survivor waits for the deadline of a minute, the watchdog ends it earlier.
constexpr int kWatchdogS = 30;

void survive(const Settings& settings, ranks::Process& process) {
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
  trestleResult_t result = trestleSuccess;
  while (result == trestleSuccess) {
    int64_t data[100] = {};
    result = trestleAllReduce(data, data, 100, trestleInt64, trestleSum, comm, nullptr);
    if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  }
  EXPECT_EQ(result, trestleRemoteError) << trestleGetLastError(comm);
  EXPECT_TRUE(contains(trestleGetLastError(comm), "rank 1")) << trestleGetLastError(comm);
  EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

void expect_noticed(const Settings& settings, ranks::Nursery& nursery,
                    const std::function<void(ranks::Process&)>& victim) {
  ranks::Job job;
  job.ranks = settings.ranks;
  job.watchdog_s = kWatchdogS;
  job.body = [&](ranks::Process& process) {
    nursery.enter();
    if (process.rank == 1) {
      victim(process);
    } else {
      survive(settings, process);
    }
  };
  ranks::expect_ended_well(ranks::run(job), {1});
}

TEST(ApiForkProcesses, ADeadRankIsNoticedWhoseChildLives) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const Death death : {Death::kKilled, Death::kEndedWithoutAWord}) {
      SCOPED_TRACE(std::string(transport) + (death == Death::kKilled ? ", killed" : ", ended"));
      const Settings settings{.ranks = 3, .transport = transport};
      ranks::Nursery nursery;
      expect_noticed(settings, nursery, [&](ranks::Process& process) {
        trestleComm_t comm = nullptr;
        ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
        int64_t data[100] = {};
        ASSERT_TRUE(succeeded(trestleAllReduce(data, data, 100, trestleInt64, trestleSum, comm, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        nursery.fork_one();
        die(death);
      });
    }
  }
}

// A thread forks while connections are made, so that some descriptors are just being opened.
TEST(ApiForkProcesses, ADeadRankIsNoticedThatForkedWhileItConnected) {
  for (const char* transport : {"shm", "tcp"}) {
    for (int round = 0; round < 3; ++round) {
      const Settings settings{.ranks = 4, .transport = transport};
      ranks::Nursery nursery;
      expect_noticed(settings, nursery, [&](ranks::Process& process) {
        std::atomic<bool> stop{false};
        std::thread forking([&] {
          for (int i = 0; i < 200 && !stop; ++i) nursery.fork_one();
        });
        trestleComm_t comm = nullptr;
        EXPECT_TRUE(succeeded(ranks::join(process, settings, &comm)));
        int64_t data[100] = {};
        EXPECT_TRUE(succeeded(trestleAllReduce(data, data, 100, trestleInt64, trestleSum, comm, nullptr), comm));
        EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        stop = true;
        forking.join();
        die(Death::kKilled);
      });
    }
  }
}

}  // namespace
}  // namespace fork_processes_test
}  // namespace api
