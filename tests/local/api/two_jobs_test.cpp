// Processes that somebody has started by hand, without a secret, at one address and port: ranks of two jobs, ranks that
// come late or again. No rank ever gets another job's data while processes of both live, and ranks of one job meet
// however often they have tried.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace two_jobs_test {
namespace {

enum State : int64_t { kNotYet, kStarted, kJoined, kRefused };

ranks::Env by_hand(int rank, uint16_t port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", "2"},
          {"LOCAL_RANK", "0"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

bool somebody_listens(uint16_t port) {
  std::ostringstream wanted;
  wanted << ':' << std::hex << std::uppercase << std::setw(4) << std::setfill('0') << port << " 00000000:0000 0A";
  std::ostringstream table;
  table << std::ifstream("/proc/net/tcp").rdbuf();
  return ranks::contains(table.str(), wanted.str());
}

// Four processes: 0 and 1 are job 1's ranks 0 and 1, 2 and 3 are job 2's. They start in a given order. Each tries one
// communicator; when all have ended their attempt, those that got one use it until it fails or has their own job's sum.
class TwoJobs {
 public:
  TwoJobs(const std::vector<int>& order, uint16_t port, const std::vector<std::string>& names)
      : order_(order), port_(port), named_(!names[0].empty()) {
    job_.ranks = 4;
    job_.env = [port, names](int process) {
      ranks::Env env = by_hand(process % 2, port);
      const std::string& name = names[static_cast<size_t>(process) / 2];
      if (!name.empty()) env["TRESTLE_JOB"] = name;
      return env;
    };
    job_.body = [this](ranks::Process& process) { live(process); };
  }
  std::vector<ranks::Outcome> run() const { return ranks::run(job_); }

 private:
  static std::atomic<int64_t>& state(ranks::Board& board, int process) {
    return board.word[static_cast<size_t>(process)];
  }
  static bool ended(ranks::Board& board, int process) { return state(board, process) >= kJoined; }

  // What the process before this one brings about has happened, as far as it can be seen.
  void await_turn(ranks::Board& board, int process) const {
    const auto place = std::ranges::find(order_, process);
    for (auto other = order_.begin(); other != place; ++other) {
      ranks::wait_until([&] { return state(board, *other) != kNotYet; });
      const auto has_partner = [&](int one) {
        return one % 2 != *other % 2 && (!named_ || one / 2 == *other / 2) && !ended(board, one);
      };
      if (std::any_of(order_.begin(), other, has_partner)) ranks::wait_until([&] { return ended(board, *other); });
      if (*other % 2 == 0) ranks::wait_until([&] { return ended(board, *other) || somebody_listens(port_); });
    }
  }

  void live(ranks::Process& process) const {
    const int me = process.rank;
    await_turn(process.board, me);
    state(process.board, me) = kStarted;
    trestleComm_t comm = nullptr;
    const trestleResult_t joined = trestleCommInitRank(&comm, 2, trestleUniqueId{}, me % 2);
    if (joined != trestleSuccess) process.result = trestleGetLastError(nullptr);
    state(process.board, me) = joined == trestleSuccess ? kJoined : kRefused;
    ranks::wait_until([&] { return std::ranges::all_of(order_, [&](int one) { return ended(process.board, one); }); });
    if (joined == trestleSuccess) use(process, comm);
    ranks::meet(process.board, 4);
    if (comm != nullptr) (void)trestleCommAbort(comm);
  }

  static void use(ranks::Process& process, trestleComm_t comm) {
    const int job = process.rank / 2;
    const float mine = job == 0 ? 1 : 100;
    float sum = 0;
    trestleResult_t result = trestleAllReduce(&mine, &sum, 1, trestleFloat32, trestleSum, comm, nullptr);
    if (result == trestleSuccess) result = trestleCommSynchronize(comm);
    if (result != trestleSuccess) {
      process.result = trestleGetLastError(comm);
      return;
    }
    EXPECT_EQ(sum, 2 * mine) << "the sum of another job";
    process.result = "its own sum";
  }

  const std::vector<int> order_;
  const uint16_t port_;
  const bool named_;
  ranks::Job job_;
};

std::vector<std::vector<int>> all_orders() {
  std::vector<int> order = {0, 1, 2, 3};
  std::vector<std::vector<int>> all;
  do {
    all.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return all;
}

class TwoJobsTest : public testing::TestWithParam<std::vector<int>> {};

TEST_P(TwoJobsTest, WithoutANameNeverMix) {
  const auto outcomes = TwoJobs(GetParam(), free_port(8), {"", ""}).run();
  ranks::expect_ended_well(outcomes);
  int told = 0;
  for (const ranks::Outcome& outcome : outcomes) {
    if (outcome.result == "its own sum") continue;
    ++told;
    for (const char* part : {"two processes joined as rank ", "two jobs meet at the rendezvous at 127.0.0.1:", "pid ",
                             "MASTER_PORT", "TRESTLE_JOB"})
      EXPECT_TRUE(ranks::contains(outcome.result, part)) << "'" << part << "' in: " << outcome.result;
  }
  EXPECT_GE(told, 2);
}

TEST_P(TwoJobsTest, WithNamesDoNotMeet) {
  const auto outcomes = TwoJobs(GetParam(), free_port(8), {"one", "two"}).run();
  ranks::expect_ended_well(outcomes);
  for (const ranks::Outcome& outcome : outcomes) EXPECT_EQ(outcome.result, "its own sum");
}

INSTANTIATE_TEST_SUITE_P(Orders, TwoJobsTest, testing::ValuesIn(all_orders()), [](const auto& one) {
  std::string name;
  for (const int process : one.param)
    name += std::string(name.empty() ? "" : "_") + "J" + std::to_string(process / 2 + 1) + "r" +
            std::to_string(process % 2);
  return name;
});

// The communicator that met there has ended, and a part of it lives. Process 2 is rank 1 of another job.
TEST(PartTest, IsWatchedWhenTheWholeHasEnded) {
  constexpr int64_t kTold = 1, kNotTold = 2;
  const uint16_t port = free_port(8);
  ranks::Job job;
  job.ranks = 3;
  job.env = [port](int process) { return by_hand(std::min(process, 1), port); };
  job.body = [](ranks::Process& process) {
    std::atomic<int64_t>& second = process.board.word[2];
    if (process.rank == 2) {
      ranks::wait_until([&] { return process.board.word[0] == 1 && process.board.word[1] == 1; });
      trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
      config.timeoutMs = 10'000;
      trestleComm_t comm = nullptr;
      EXPECT_NE(trestleCommInitRankConfig(&comm, 2, trestleUniqueId{}, 1, &config), trestleSuccess);
      const bool told = ranks::contains(trestleGetLastError(nullptr), "two jobs meet");
      EXPECT_TRUE(told) << trestleGetLastError(nullptr);
      second = told ? kTold : kNotTold;
      return;
    }
    trestleComm_t whole = nullptr, part = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitRank(&whole, 2, trestleUniqueId{}, process.rank)));
    ASSERT_TRUE(ranks::succeeded(trestleCommSplit(whole, 0, process.rank, &part, nullptr), whole));
    ASSERT_TRUE(ranks::succeeded(trestleCommDestroy(whole)));
    process.board.word[static_cast<size_t>(process.rank)] = 1;
    trestleResult_t state = trestleSuccess;
    ranks::wait_until([&] {
      EXPECT_EQ(trestleCommGetAsyncError(part, &state), trestleSuccess);
      return state != trestleSuccess || second == kNotTold;
    });
    EXPECT_TRUE(ranks::contains(trestleGetLastError(part), "two jobs meet")) << trestleGetLastError(part);
    EXPECT_EQ(trestleCommAbort(part), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job));
}

// ---- the same rank again

class ComesAgainTest : public testing::TestWithParam<const char*> {
 protected:
  ranks::Env env(int rank) const {
    ranks::Env env = by_hand(rank, port_);
    if (GetParam() == std::string("MASTER_ADDR")) return env;
    env.erase("MASTER_ADDR");
    env.erase("MASTER_PORT");
    if (GetParam() == std::string("COMM_ID")) env["TRESTLE_COMM_ID"] = "127.0.0.1:" + std::to_string(port_);
    if (GetParam() == std::string("STORE")) env["TRESTLE_STORE"] = "file:" + folder_.path();
    return env;
  }
  // Tries until the ranks meet.
  static trestleComm_t join(int rank, const std::function<void()>& failed = {}) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = 300;
    constexpr int kMost = 60;
    for (int i = 0; i < kMost; ++i) {
      trestleComm_t comm = nullptr;
      if (trestleCommInitRankConfig(&comm, 2, trestleUniqueId{}, rank, &config) == trestleSuccess) return comm;
      if (failed) failed();
    }
    ADD_FAILURE() << "rank " << rank << " has met nobody: " << trestleGetLastError(nullptr);
    return nullptr;
  }
  static void expect_sum(trestleComm_t comm) {
    const float mine = 1;
    float sum = 0;
    EXPECT_TRUE(ranks::succeeded(trestleAllReduce(&mine, &sum, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(sum, 2);
  }

  const uint16_t port_ = free_port(8);
  const TemporaryFolder folder_;
};

TEST_P(ComesAgainTest, ALateRankMeetsOneThatHasTriedBefore) {
  ranks::Job job;
  job.ranks = 2;
  job.env = [this](int rank) { return env(rank); };
  job.body = [](ranks::Process& process) {
    if (process.rank == 1) ranks::wait_until([&] { return process.board.word[0] >= 2; });
    const trestleComm_t comm = join(process.rank, [&] { process.board.word[0] += process.rank == 0; });
    if (comm == nullptr) return;
    expect_sum(comm);
    EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job));
}

// Process 1 dies when the communicator is made; process 2 is rank 1 started again.
TEST_P(ComesAgainTest, ARankThatIsStartedAgainMeetsTheOneThatSurvived) {
  ranks::Job job;
  job.ranks = 3;
  job.env = [this](int process) { return env(std::min(process, 1)); };
  job.body = [](ranks::Process& process) {
    if (process.rank == 2) ranks::wait_until([&] { return process.board.word[0] == 1; });
    trestleComm_t comm = join(std::min(process.rank, 1));
    if (comm == nullptr) return;
    if (process.rank == 1) _exit(0);
    if (process.rank == 0) {
      trestleResult_t state = trestleSuccess;
      ranks::wait_until(
          [&] { return trestleCommGetAsyncError(comm, &state) == trestleSuccess && state != trestleSuccess; });
      process.board.word[0] = 1;
      EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
      comm = join(0);
      if (comm == nullptr) return;
    }
    expect_sum(comm);
    EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job));
}

INSTANTIATE_TEST_SUITE_P(Places, ComesAgainTest, testing::Values("MASTER_ADDR", "COMM_ID", "STORE"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace two_jobs_test
}  // namespace api
