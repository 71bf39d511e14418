// CommDestroy and CommAbort leave nothing of a communicator: no descriptor, no mapping.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace leftovers_test {
namespace {

using ranks::succeeded;

constexpr size_t kCount = size_t{1} << 20;

// The kinds of this process's descriptors, and its mappings of the library's shared memory.
std::vector<std::string> holdings() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of the listing itself
    const std::string name = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || name.starts_with("/proc/")) continue;
    all.push_back("descriptor " + name);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("memfd:trestle");
    if (at != std::string::npos) all.push_back("mapping " + line.substr(at));
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Else a communicator may start one more.
ranks::Env one_helper(int) {
  return {{"TRESTLE_PROGRESS_THREADS", "1"}};
}

// The descriptors and mappings that were not there before. The process keeps the bells of its two threads, the helper
// and the watch, independently of communicators.
std::vector<std::string> leftovers(const std::vector<std::string>& before) {
  std::vector<std::string> now = holdings();
  std::vector<std::string> more;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(more));
  for (int thread = 0; thread < 2; ++thread) {
    const auto bell = std::find(more.begin(), more.end(), "descriptor anon_inode:[eventfd]");
    if (bell != more.end()) more.erase(bell);
  }
  return more;
}

trestleResult_t use(trestleComm_t comm) {
  std::vector<float> data(kCount, 1.0f);
  void* shared = nullptr;
  EXPECT_TRUE(succeeded(trestleMemAlloc(&shared, kCount)));
  trestleResult_t result = trestleAllReduce(data.data(), data.data(), 1, trestleFloat32, trestleSum, comm, nullptr);
  if (result == trestleSuccess)
    result = trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  if (result == trestleSuccess)
    result = trestleAllReduce(shared, shared, kCount / 4, trestleFloat32, trestleSum, comm, nullptr);
  const trestleResult_t waited = trestleCommSynchronize(comm);
  EXPECT_TRUE(succeeded(trestleMemFree(shared)));
  return result == trestleSuccess ? waited : result;
}

// Ranks as processes. `body` ends the communicator; afterwards nothing of it may be left.
void expect_nothing_left(const ranks::Settings& settings,
                         const std::function<void(ranks::Process&, trestleComm_t)>& body) {
  SCOPED_TRACE(testing::Message() << settings);
  ranks::Job job;
  job.ranks = settings.ranks;
  job.env = one_helper;
  job.body = [&](ranks::Process& process) {
    const std::vector<std::string> before = holdings();
    for (int round = 0; round < 2; ++round) {
      if (process.rank == 0) process.board.id_written.store(0);
      ranks::meet(process.board, process.ranks);
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
      body(process, comm);
      // The rendezvous of the id ends by itself when it has answered all ranks.
      if (process.rank == 0) ranks::wait_until([&] { return leftovers(before).empty(); });
      const std::vector<std::string> left = leftovers(before);
      EXPECT_TRUE(left.empty()) << left.size() << " are left, the first: " << left.front();
      ranks::meet(process.board, process.ranks);
    }
  };
  ranks::expect_ended_well(ranks::run(job));
}

std::vector<ranks::Settings> everywhere(int ranks) {
  std::vector<ranks::Settings> all;
  for (const char* transport : {"shm", "tcp", ""}) all.push_back({.ranks = ranks, .transport = transport});
  return all;
}

TEST(ApiLeftovers, NoneAfterDestroy) {
  for (const ranks::Settings& settings : everywhere(3)) {
    expect_nothing_left(settings, [](ranks::Process&, trestleComm_t comm) {
      EXPECT_TRUE(succeeded(use(comm), comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

TEST(ApiLeftovers, NoneAfterSplits) {
  for (const ranks::Settings& settings : everywhere(4)) {
    expect_nothing_left(settings, [](ranks::Process& process, trestleComm_t comm) {
      std::array<trestleComm_t, 2> parts{};
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, process.rank % 2, 0, &parts[0], nullptr), comm));
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, -process.rank, &parts[1], nullptr), comm));
      for (trestleComm_t part : parts) EXPECT_TRUE(succeeded(use(part), part));
      EXPECT_TRUE(succeeded(use(comm), comm));
      for (trestleComm_t part : parts) EXPECT_TRUE(succeeded(trestleCommDestroy(part)));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

// Rank 1 gives up in the middle. All ranks end their objects by Destroy or by Abort.
TEST(ApiLeftovers, NoneAfterFailuresAndAborts) {
  for (const ranks::Settings& settings : everywhere(3)) {
    expect_nothing_left(settings, [](ranks::Process& process, trestleComm_t comm) {
      EXPECT_TRUE(succeeded(use(comm), comm));
      ranks::meet(process.board, process.ranks);
      if (process.rank == 1) {
        EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
        return;
      }
      EXPECT_EQ(use(comm), trestleAborted);
      EXPECT_TRUE(succeeded(process.rank == 0 ? trestleCommDestroy(comm) : trestleCommAbort(comm)));
    });
  }
}

TEST(ApiLeftovers, NoneOfThreadsAsRanks) {
  const auto body = [] {
    const std::vector<std::string> before = holdings();
    for (const char* transport : {"", "loopback"}) {
      ranks::run_threads({.ranks = 4, .transport = transport},
                         [](int, trestleComm_t comm) { EXPECT_TRUE(succeeded(use(comm), comm)); });
      const std::vector<std::string> left = leftovers(before);
      EXPECT_TRUE(left.empty()) << left.size() << " are left, the first: " << left.front();
    }
  };
  ranks::isolated(body, one_helper(0));
}

// Another communicator of the process lives, and a thread waits in it.
TEST(ApiLeftovers, NoneBesideACommunicatorThatLives) {
  for (const char* transport : {"shm", "tcp"}) {
    const auto body = [](ranks::Process& process, trestleComm_t comm) {
      EXPECT_TRUE(succeeded(use(comm), comm));
      trestleComm_t part = nullptr;
      const std::vector<std::string> before = holdings();
      for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &part, nullptr), comm));
        EXPECT_TRUE(succeeded(use(part), part));
        EXPECT_TRUE(succeeded(trestleCommDestroy(part)));
        if (process.rank == 0) ranks::wait_until([&] { return leftovers(before).empty(); });
        const std::vector<std::string> left = leftovers(before);
        EXPECT_TRUE(left.empty()) << left.size() << " are left, the first: " << left.front();
      }
    };
    ranks::on_processes({.ranks = 2, .transport = transport}, body, one_helper);
  }
}

}  // namespace
}  // namespace leftovers_test
}  // namespace api
