// The limit of open files: the soft one is raised, the hard one is said before anything is half made.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <vector>

#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace process_limits {
namespace descriptor_limit_test {
namespace {

using ranks::succeeded;

rlim_t open_now() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<rlim_t>(std::distance(begin(all), end(all)));
}

// Returns the soft limit.
rlim_t leave(rlim_t soft, rlim_t hard) {
  const rlim_t open = open_now();
  const rlimit limit{open + soft, open + hard};
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit.rlim_cur;
}

void add_up(trestleComm_t comm, float sum) {
  float data = 1.0f;
  EXPECT_TRUE(succeeded(trestleAllReduce(&data, &data, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(data, sum);
}

// More than the board of small collectives takes.
void send_to_all(trestleComm_t comm, int ranks) {
  constexpr size_t kCount = 100'000;
  std::vector<float> mine(kCount * static_cast<size_t>(ranks), 1.0f);
  std::vector<float> theirs(mine.size());
  EXPECT_TRUE(succeeded(trestleAllToAll(mine.data(), theirs.data(), kCount, trestleFloat32, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(theirs, mine);
}

void destroy_all(const std::vector<trestleComm_t>& comms) {
  for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

TEST(DescriptorLimit, SoftIsRaised) {
  const TemporaryFolder folder;
  ranks::Job job;
  job.ranks = 2;
  job.env = [&folder](int rank) {
    return ranks::Env{{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_FILE", folder.path(std::to_string(rank))}};
  };
  job.body = [](ranks::Process& process) {
    process.result = std::to_string(leave(10, 2000));
    std::vector<trestleComm_t> comms(1);
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2}, comms.data())));
    for (int i = 0; i < 20; ++i) {
      comms.push_back(nullptr);
      ASSERT_TRUE(succeeded(trestleCommSplit(comms[0], 0, 0, &comms.back(), nullptr), comms[0]));
      add_up(comms.back(), 2);
    }
    destroy_all(comms);
  };
  const std::vector<ranks::Outcome> outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string log = folder.content(std::to_string(rank));
    const std::string said =
        "open files (ulimit -n) is raised from " + outcomes[static_cast<size_t>(rank)].result + " to ";
    EXPECT_TRUE(ranks::contains(log, said)) << said << " in " << log;
  }
}

// What the parts share goes on when the communicator that they come from has ended.
TEST(DescriptorLimit, PartsOnOneHostNeedThreeEach) {
  constexpr int kRanks = 5;
  constexpr int kParts = 12;
  ranks::Job job;
  job.ranks = kRanks;
  job.body = [](ranks::Process& process) {
    std::vector<trestleComm_t> parts(kParts);
    trestleComm_t whole = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = kRanks}, &whole)));
    add_up(whole, kRanks);
    send_to_all(whole, kRanks);
    const rlim_t before = open_now();
    for (trestleComm_t& part : parts) {
      ASSERT_TRUE(succeeded(trestleCommSplit(whole, 0, -process.rank, &part, nullptr), whole));
      send_to_all(part, kRanks);
    }
    EXPECT_LE(open_now(), before + 3 * kParts);
    EXPECT_TRUE(succeeded(trestleCommDestroy(whole)));
    for (trestleComm_t part : parts) add_up(part, kRanks);
    destroy_all(parts);
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Rank 1 has the low limit. Both ranks hear of it, and what they have goes on.
TEST(DescriptorLimit, HardIsSaidBySplits) {
  ranks::Job job;
  job.ranks = 2;
  job.body = [](ranks::Process& process) {
    std::vector<trestleComm_t> comms(1);
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2}, comms.data())));
    if (process.rank == 1) process.board.word[0] = static_cast<int64_t>(leave(60, 60));
    ranks::meet(process.board, 2);
    const std::string limit = std::to_string(process.board.word[0].load());
    trestleResult_t result = trestleSuccess;
    for (int i = 0; i < 60 && result == trestleSuccess; ++i) {
      trestleComm_t part = nullptr;
      result = trestleCommSplit(comms[0], 0, 0, &part, nullptr);
      if (result == trestleSuccess) comms.push_back(part);
    }
    EXPECT_TRUE(ranks::refused(result, trestleSystemError,
                               {"CommSplit: rank 1 (", "): a part of 2 ranks needs ", " more open files, and ",
                                " are open: ulimit -n is " + limit + ", its hard limit " + limit},
                               comms[0]));
    EXPECT_GT(comms.size(), 2u);
    for (trestleComm_t comm : comms) add_up(comm, 2);
    destroy_all(comms);
  };
  ranks::expect_ended_well(ranks::run(job));
}

// The rank still joins the others to tell them.
TEST(DescriptorLimit, HardIsSaidToAllRanks) {
  ranks::Job job;
  job.ranks = 2;
  job.body = [](ranks::Process& process) {
    if (process.rank == 1) leave(9, 9);
    trestleComm_t comm = nullptr;
    EXPECT_TRUE(ranks::refused(ranks::join(process, {.ranks = 2}, &comm), trestleSystemError,
                               {"rank 1 (", "a communicator of 2 ranks needs ", "ulimit -n is "}));
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(DescriptorLimit, HardIsSaidToThreadsAsRanks) {
  ranks::isolated([] {
    leave(20, 20);
    std::vector<trestleComm_t> comms(4);
    EXPECT_TRUE(ranks::refused(trestleCommInitAll(comms.data(), 4, nullptr), trestleSystemError,
                               {"CommInitAll: 4 ranks needs ", "ulimit -n is "}));
  });
}

}  // namespace
}  // namespace descriptor_limit_test
}  // namespace process_limits
