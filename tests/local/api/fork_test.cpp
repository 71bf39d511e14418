// A forked child may not use inherited objects of the library, but may make its own. One process whose ranks are
// threads; fork_processes_test.cpp tests ranks in several processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "local/api/every_call.h"
#include "support/forked.h"
#include "support/ranks.h"

namespace api {
namespace fork_test {
namespace {

using ranks::contains;
using ranks::Forked;
using ranks::refused;
using ranks::succeeded;

TEST(ApiFork, TheListOfCallsIsThatOfTheHeader) {
  std::set<std::string> listed;
  for (const auto& call : every_call::calls_on({})) listed.insert(call.name);
  for (const auto& call : every_call::other_calls()) listed.insert(call.name);
  for (const std::string& name : every_call::queries()) listed.insert(name);
  const std::vector<std::string> declared = every_call::functions_of_the_header();
  EXPECT_EQ(listed, std::set<std::string>(declared.begin(), declared.end()));
  EXPECT_GT(declared.size(), 60u);
}

TEST(ApiFork, AChildAfterEverythingWasDestroyed) {
  ranks::isolated([] {
    ranks::use_own_communicator(3);
    for (int i = 0; i < 3; ++i) Forked([] { ranks::use_own_communicator(3); }).expect_end();
    ranks::use_own_communicator(2);
  });
}

// Runs `body` on rank 0's thread while two communicators of this process's threads wait for it.
void beside_living_ranks(const std::function<void(trestleComm_t)>& body) {
  std::atomic<bool> done{false};
  ranks::run_threads({.ranks = 2}, [&](int rank, trestleComm_t comm) {
    int32_t stop = 0;
    while (stop == 0) {  // rank 1 waits for rank 0 in the library while rank 0 forks
      if (rank == 0) {
        body(comm);
        done = true;
        stop = 1;
      }
      ASSERT_TRUE(succeeded(trestleAllReduce(&stop, &stop, 1, trestleInt32, trestleSum, comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    }
  });
  EXPECT_TRUE(done);
}

TEST(ApiFork, AChildBesideLivingCommunicators) {
  ranks::isolated([] {
    beside_living_ranks([](trestleComm_t comm) {
      for (int i = 0; i < 3; ++i) {
        Forked([&] {
          int rank = -1;
          EXPECT_TRUE(refused(trestleCommUserRank(comm, &rank), trestleInvalidUsage, {"before fork()"}));
          ranks::use_own_communicator(3);
          EXPECT_TRUE(refused(trestleCommDestroy(comm), trestleInvalidUsage, {"before fork()"}));
        }).expect_end();
      }
    });
  });
}

TEST(ApiFork, AChildThatDoesNothingOrIsKilled) {
  ranks::isolated([] {
    beside_living_ranks([](trestleComm_t) {
      Forked([] {}).expect_end();
      Forked([] { kill(getpid(), SIGKILL); }).expect_end(SIGKILL);
      Forked([] { _exit(0); }).expect_end();
    });
  });
}

// Each generation has one living communicator while it forks the next one.
void generation(int number, const std::vector<every_call::Things>& inherited) {
  trestleComm_t comms[2] = {};
  ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
  std::vector<every_call::Things> all = inherited;
  all.push_back(every_call::make_things(comms[0]));
  for (const auto& things : inherited) {
    EXPECT_TRUE(refused(trestleCommDestroy(things.comm), trestleInvalidUsage, {"CommDestroy", "before fork()"}));
    EXPECT_TRUE(refused(trestleStreamDestroy(things.stream), trestleInvalidUsage, {"StreamDestroy", "before fork()"}));
    EXPECT_TRUE(refused(trestleMemFree(things.memory), trestleInvalidUsage, {"before fork()"}));
  }
  ranks::use_own_communicator(2);
  if (number < 3) Forked([&] { generation(number + 1, all); }).expect_end();
  every_call::free_things(all.back());
  for (const trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

TEST(ApiFork, ChildrenOfChildren) {
  ranks::isolated([] { generation(0, {}); });
}

// ---- threads of the parent are in the library during the fork

// Makes, uses and frees objects repeatedly until `stop`.
void busy_life(const std::atomic<bool>& stop) {
  while (!stop) ranks::use_own_communicator(2);
}

void busy_handles(const std::atomic<bool>& stop) {
  while (!stop) {
    trestleStream_t stream = nullptr;
    trestleEvent_t event = nullptr;
    void* memory = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
    ASSERT_TRUE(succeeded(trestleEventCreate(&event)));
    ASSERT_TRUE(succeeded(trestleMemAlloc(&memory, 4096)));
    ASSERT_TRUE(succeeded(trestleEventRecord(event, stream)));
    ASSERT_TRUE(succeeded(trestleEventDestroy(event)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    ASSERT_TRUE(succeeded(trestleMemFree(memory)));
  }
}

void busy_ids(const std::atomic<bool>& stop) {
  while (!stop) {
    trestleUniqueId id;
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
    ASSERT_TRUE(succeeded(trestleCommInitRank(&comm, 1, id, 0)));
    ASSERT_TRUE(succeeded(trestleCommDestroy(comm)));
  }
}

constexpr const char* kNoChildren = "the sanitizer's allocator is not for children of a process with threads";

TEST(ApiFork, WhileThreadsAreInTheLibrary) {
  if (!ranks::children_may_allocate()) GTEST_SKIP() << kNoChildren;
  ranks::isolated([] {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] { busy_life(stop); });
    threads.emplace_back([&] { busy_handles(stop); });
    if (ranks::proofs()) threads.emplace_back([&] { busy_ids(stop); });
    for (int i = 0; i < 40; ++i) Forked([] { ranks::use_own_communicator(2); }).expect_end();
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(ApiFork, WhileAThreadMakesTheFirstCallOfTheProcess) {
  if (!ranks::children_may_allocate()) GTEST_SKIP() << kNoChildren;
  for (uint64_t i = 0; i < 20; ++i) {
    ranks::isolated([i] {
      std::thread first([] { ranks::use_own_communicator(2); });
      ranks::spin(i * 20'000);
      Forked([] { ranks::use_own_communicator(2); }).expect_end();
      first.join();
    });
  }
}

// ---- other objects of a process

TEST(ApiFork, AGroupIsTheParents) {
  ranks::isolated([] {
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
    int32_t data[2] = {1, 2};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(
          succeeded(trestleAllReduce(&data[r], &data[r], 1, trestleInt32, trestleSum, comms[r], nullptr), comms[r]));
    }
    ASSERT_TRUE(succeeded(trestleCommDestroy(comms[0])));  // at the group's end
    Forked([] {
      ranks::use_own_communicator(2);  // outside of any group
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleGroupEnd()));
      EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"before fork()"}));
      EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"GroupEnd without GroupStart"}));
    }).expect_end();
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    ASSERT_TRUE(succeeded(trestleCommDestroy(comms[1])));
    EXPECT_EQ(data[0], 3);
    EXPECT_EQ(data[1], 3);
  });
}

TEST(ApiFork, MemoryIsSharedWithTheParentAndTheParents) {
  ranks::isolated([] {
    void* memory = nullptr;
    ASSERT_TRUE(succeeded(trestleMemAlloc(&memory, 4096)));
    auto* const words = static_cast<std::atomic<int>*>(memory);
    words[0] = 5;
    Forked([&] {
      EXPECT_EQ(words[0], 5);
      words[1] = 6;
      EXPECT_TRUE(refused(trestleMemFree(memory), trestleInvalidUsage, {"MemAlloc", "before fork()"}));
      EXPECT_TRUE(refused(trestleMemFree(&memory), trestleInvalidArgument, {"MemAlloc"}));
      words[2] = 7;
      trestleComm_t comms[2] = {};  // ordinary memory as a buffer
      ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
      int32_t one = 1;
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      ASSERT_TRUE(succeeded(trestleAllReduce(memory, memory, 3, trestleInt32, trestleMax, comms[0], nullptr)));
      int32_t others[3] = {one, one, one};
      ASSERT_TRUE(succeeded(trestleAllReduce(others, others, 3, trestleInt32, trestleMax, comms[1], nullptr)));
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      for (const trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommDestroy(comm)));
      EXPECT_EQ(others[2], 7);
    }).expect_end();
    EXPECT_EQ(words[1], 6);
    EXPECT_EQ(words[2], 7);
    EXPECT_TRUE(succeeded(trestleMemFree(memory)));
  });
}

TEST(ApiFork, AChildReadsTheVariablesAnew) {
  ranks::isolated([] {
    int rank = -1;
    EXPECT_TRUE(succeeded(trestleLauncherInfo(&rank, nullptr, nullptr)));
    EXPECT_EQ(rank, 0) << "no launcher: alone";
    Forked([&] {
      setenv("RANK", "3", 1);
      setenv("WORLD_SIZE", "4", 1);
      EXPECT_TRUE(succeeded(trestleLauncherInfo(&rank, nullptr, nullptr)));
      EXPECT_EQ(rank, 3);
      setenv("RANK", "2", 1);  // read once per process, so without effect
      EXPECT_TRUE(succeeded(trestleLauncherInfo(&rank, nullptr, nullptr)));
      EXPECT_EQ(rank, 3);
    }).expect_end();
    EXPECT_TRUE(succeeded(trestleLauncherInfo(&rank, nullptr, nullptr)));
    EXPECT_EQ(rank, 0);
  });
}

std::set<int> open_descriptors() {
  std::set<int> all;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) all.insert(fd);
  }
  return all;
}

// The names of the library's shared memory that this process has mapped.
std::set<std::string> shared_mappings() {
  std::set<std::string> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/memfd:trestle");
    if (at != std::string::npos) all.insert(line.substr(at, line.find(' ', at) - at));
  }
  return all;
}

TEST(ApiFork, AChildHasNoDescriptorAndNoMemoryOfTheTransports) {
  if (!ranks::proofs()) GTEST_SKIP() << "needs ranks in several processes";
  for (const char* transport : {"shm", "tcp"}) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::Job job;
    job.ranks = 2;
    job.body = [&](ranks::Process& process) {
      const std::set<int> before = open_descriptors();
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
      const every_call::Things things = every_call::make_things(comm);
      std::vector<float> data(1 << 20, 1);
      ASSERT_TRUE(succeeded(
          trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, nullptr)));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      const int own = open("/dev/null", O_RDONLY | O_CLOEXEC);
      EXPECT_GT(open_descriptors().size(), before.size() + 3);
      Forked([&] {
        std::set<int> expected = before;
        expected.insert(own);
        EXPECT_EQ(open_descriptors(), expected);
        EXPECT_EQ(shared_mappings(), std::set<std::string>{"/memfd:trestle-memory"});
        // The child may reuse the numbers. No inherited object may close them.
        std::vector<int> reused;
        for (int i = 0; i < 50; ++i) reused.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
        for (const auto& call : every_call::calls_on(things)) call.call();
        ranks::use_own_communicator(2);
        for (const int fd : reused) EXPECT_GE(fcntl(fd, F_GETFD), 0) << fd;
      }).expect_end();
      every_call::free_things(things);
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    };
    ranks::expect_ended_well(ranks::run(job));
  }
}

}  // namespace
}  // namespace fork_test
}  // namespace api
