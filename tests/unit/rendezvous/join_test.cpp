// Ranks that meet in every possible way, and the exchanges afterwards.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/config/launcher.h"
#include "rendezvous/message.h"
#include "rendezvous/server/server.h"
#include "transport/socket/socket.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace join_test {
namespace {

std::string blob(int32_t rank, int round) {
  return "rank " + std::to_string(rank) + std::string(static_cast<size_t>((rank * 977 + round * 13) % 5000), 'x');
}

void exchange(std::vector<std::unique_ptr<Bootstrap>>& ranks) {
  on_each_rank(ranks, [&](Bootstrap& rank) {
    const int64_t deadline = monotonic_clock().now_ns() + 120 * kSecond;
    for (int round = 0; round < 3; ++round) {
      const auto all = rank.all_gather(blob(rank.rank(), round), deadline);
      ASSERT_TRUE(all.ok()) << all.error().message;
      ASSERT_EQ(all.value().size(), static_cast<size_t>(rank.nranks()));
      for (int32_t r = 0; r < rank.nranks(); ++r) EXPECT_EQ(all.value()[static_cast<size_t>(r)], blob(r, round));
      const Status barrier = rank.barrier(deadline);
      EXPECT_TRUE(barrier.ok()) << barrier.error().message;
    }
  });
}

uint16_t free_port() {
  return taken_port().address.port();
}

class JoinTest : public testing::TestWithParam<int32_t> {};

TEST_P(JoinTest, AllRanksGetAllBlobs) {
  auto ranks = all_of(join_all(configs_for(GetParam(), loopback_id())));
  ASSERT_EQ(ranks.size(), static_cast<size_t>(GetParam()));
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->job(), ranks[0]->job());
    EXPECT_EQ(rank->secret(), ranks[0]->secret());
    EXPECT_EQ(rank->local_ip().text(), "127.0.0.1");
  }
  exchange(ranks);
}

TEST_P(JoinTest, OverIpv6AllRanksGetAllBlobs) {
  BootstrapConfig maker = loopback_config(1, 0, {});
  maker.family = "AF_INET6";
  const auto id = make_unique_id(maker, 0);
  if (!id.ok()) GTEST_SKIP() << "this machine has no ::1: " << id.error().message;
  std::vector<BootstrapConfig> configs = configs_for(GetParam(), id.value());
  for (BootstrapConfig& config : configs) config.family = "AF_INET6";
  auto ranks = all_of(join_all(configs));
  ASSERT_EQ(ranks.size(), static_cast<size_t>(GetParam()));
  for (const auto& rank : ranks) EXPECT_EQ(rank->local_ip(), parse_host("[::1]").value());
  exchange(ranks);
}

TEST_P(JoinTest, InProcessNeedsNoNetwork) {
  BootstrapConfig config;
  config.nranks = GetParam();
  auto ranks = Bootstrap::join_in_process(config);
  ASSERT_TRUE(ranks.ok()) << ranks.error().message;
  for (const auto& rank : ranks.value()) EXPECT_FALSE(rank->local_ip().is_known());
  exchange(ranks.value());
}

INSTANTIATE_TEST_SUITE_P(Ranks, JoinTest, testing::Values(1, 2, 3, 5, 8, 16, 33));

TEST(JoinTest, InProcessCommunicatorsHaveDifferentJobs) {
  BootstrapConfig config;
  config.nranks = 1;
  const auto first = Bootstrap::join_in_process(config);
  const auto second = Bootstrap::join_in_process(config);
  EXPECT_NE(first.value()[0]->job(), second.value()[0]->job());
}

// Several communicators of one job, one after another and through the same address.
TEST(JoinTest, LauncherVariablesServeSeveralCommunicators) {
  const uint16_t port = free_port();
  std::vector<JobId> jobs;
  for (int round = 0; round < 3; ++round) {
    auto configs = configs_for(3, {});
    for (auto& config : configs) {
      config.launcher.master_address = "127.0.0.1";
      config.launcher.master_port = port;
      config.secret = "known to all";
    }
    auto ranks = all_of(join_all(configs));
    ASSERT_EQ(ranks.size(), 3u);
    exchange(ranks);
    jobs.push_back(ranks[0]->job());
  }
  EXPECT_NE(jobs[0], jobs[1]);
  EXPECT_NE(jobs[1], jobs[2]);
}

// torchrun's own store listens on MASTER_PORT.
TEST(JoinTest, MasterPortMayBeTaken) {
  const Listener taken = taken_port();
  auto configs = configs_for(2, {});
  for (auto& config : configs) {
    config.launcher.master_address = "127.0.0.1";
    config.launcher.master_port = taken.address.port();
    config.handshake_timeout_ns = kSecond / 5;  // for the silent connection
  }
  auto ranks = all_of(join_all(configs));
  ASSERT_EQ(ranks.size(), 2u);
  exchange(ranks);
}

TEST(JoinTest, CommunicatorIdNamesTheAddress) {
  const std::string id = "127.0.0.1:" + std::to_string(free_port());
  for (int round = 0; round < 2; ++round) {
    auto configs = configs_for(3, {});
    for (auto& config : configs) config.communicator_id = id;
    auto ranks = all_of(join_all(configs));
    ASSERT_EQ(ranks.size(), 3u);
    exchange(ranks);
  }
}

TEST(JoinTest, NothingSetIsSaid) {
  const Joined joined = Bootstrap::join(loopback_config(2, 0, {}));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::kInvalidUsage);
  EXPECT_TRUE(contains(joined.error().message, "TRESTLE_COMM_ID")) << joined.error().message;
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "trestle-store-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  // If anything is left in the folder, its removal fails, and so does the test.
  void TearDown() override { EXPECT_EQ(rmdir(directory_.c_str()), 0) << directory_; }
  std::vector<BootstrapConfig> configs(int32_t nranks) {
    auto configs = configs_for(nranks, {});
    for (auto& config : configs) config.store = "file:" + directory_;
    return configs;
  }
  std::string directory_;
};

TEST_F(StoreTest, RanksMeetAndNothingIsLeft) {
  for (int32_t nranks : {1, 2, 5, 8}) {
    auto ranks = all_of(join_all(configs(nranks)));
    ASSERT_EQ(ranks.size(), static_cast<size_t>(nranks));
    EXPECT_FALSE(ranks[0]->secret().empty());
    exchange(ranks);
  }
}

TEST_F(StoreTest, DifferentNumbersOfRanksAreRefused) {
  auto all = configs(2);
  all[1].nranks = 3;
  for (const Joined& joined : join_all(all)) {
    ASSERT_FALSE(joined.ok());
    EXPECT_TRUE(contains(joined.error().message, "there are 3 ranks")) << joined.error().message;
  }
  rmdir(directory_.c_str());
  mkdir(directory_.c_str(), 0700);
}

TEST_F(StoreTest, MissingRankIsNamed) {
  const auto without_rank_2 = [&](int64_t deadline_ns) {
    auto all = configs(3);
    all.pop_back();
    for (auto& config : all) config.deadline_ns = deadline_ns;
    return all;
  };
  for (const Joined& joined : join_until_told("rank 2", without_rank_2)) {
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.error().code, Code::kTimeout);
    EXPECT_TRUE(contains(joined.error().message, "rank 2")) << joined.error().message;
  }
}

// Kills a process that waits in the store. Returns its files.
std::filesystem::path leave_files_of_a_killed_rank(const BootstrapConfig& config, const std::string& directory) {
  const pid_t child = fork();
  if (child == 0) {
    (void)Bootstrap::join(config);
    _exit(0);
  }
  std::filesystem::path left;
  while (left.empty() && !testing::Test::HasFailure()) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::filesystem::path first = entry.path() / "0";  // communicator in the making
      if (std::filesystem::exists(first / ("rank-" + std::to_string(config.rank)))) left = first;
    }
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return left;
}

TEST_F(StoreTest, AFailureThatAKilledJobLeftIsNotOurs) {
  const std::filesystem::path left = leave_files_of_a_killed_rank(configs(2)[0], directory_);
  JoinAnswer answer;
  answer.error = {Code::kTimeout, "yesterday's failure"};
  std::ofstream(left / "error") << encode(answer);
  std::ofstream(left / ".secret-1-1") << "half a";
  auto ranks = all_of(join_all(configs(2)));
  ASSERT_EQ(ranks.size(), 2u);
  exchange(ranks);
}

// Any process may have the number of a killed one. In a container the numbers are always the same.
TEST_F(StoreTest, TheProcessNumberOfAKilledRankMayBeAnybodys) {
  for (const int32_t rank : {0, 1}) {
    const std::string store = directory_ + "/" + std::to_string(rank);
    ASSERT_EQ(mkdir(store.c_str(), 0700), 0);
    auto both = configs(2);
    for (auto& config : both) config.store = "file:" + store;
    const std::filesystem::path left = leave_files_of_a_killed_rank(both[static_cast<size_t>(rank)], store);
    std::fstream card(left / ("rank-" + std::to_string(rank)), std::ios::in | std::ios::out | std::ios::binary);
    const int32_t own = getpid();
    card.seekp(-6, std::ios::end);  // there are two bytes after the number
    card.write(reinterpret_cast<const char*>(&own), sizeof own);
    card.close();
    {
      auto ranks = all_of(join_all(both));
      ASSERT_EQ(ranks.size(), 2u);
      exchange(ranks);
    }
    EXPECT_EQ(rmdir(store.c_str()), 0);
  }
}

// One rank is late while others of its job live, so their files are no leftovers.
TEST_F(StoreTest, WhoComesLateFindsTheOthers) {
  auto all = configs(3);
  std::vector<Joined> results;
  for (int i = 0; i < 3; ++i) results.emplace_back(Error{Code::kInternalError, "did not run"});
  std::vector<std::thread> threads;
  const auto files = [&] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      count += entry.path().filename().string().starts_with("rank-") ? 1 : 0;
    }
    return count;
  };
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] { results[i] = Bootstrap::join(all[i]); });
    while (i < 2 && files() != i + 1) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  auto ranks = all_of(std::move(results));
  ASSERT_EQ(ranks.size(), 3u);
  exchange(ranks);
}

TEST(JoinTest, AMasterPortThatIsNoneIsRefusedWhateverTheNumberOfRanks) {
  for (const int32_t nranks : {1, 2}) {
    auto config = loopback_config(nranks, 0, {});
    config.launcher = read_launcher({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "99999"}});
    const Joined joined = Bootstrap::join(config);
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.error().code, Code::kInvalidUsage);
    EXPECT_TRUE(contains(joined.error().message, "MASTER_PORT=99999")) << joined.error().message;
  }
}

TEST(JoinTest, BadStoreIsRefused) {
  auto config = loopback_config(1, 0, {});
  config.store = "elsewhere";
  const Joined joined = Bootstrap::join(config);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace join_test
}  // namespace trestle
