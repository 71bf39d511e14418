// A rank fails or dies while a communicator is being made. The others name it and no other rank.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/fork.h"
#include "unit/rendezvous/ghost.h"

namespace trestle {
namespace failure_test {
namespace {

// The other ranks of a job in which `body` plays rank `ghost`.
std::vector<Joined> join_with_ghost(int32_t nranks, int32_t ghost, const UniqueIdBytes& id,
                                    const std::function<void()>& body) {
  std::vector<BootstrapConfig> configs = configs_for(nranks, id);
  configs.erase(configs.begin() + ghost);
  std::thread haunting(body);
  std::vector<Joined> results = join_all(configs);
  haunting.join();
  return results;
}

void expect_all_say(const std::vector<Joined>& results, Code code, const std::string& sentence) {
  for (const Joined& joined : results) {
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.error().code, code) << joined.error().message;
    EXPECT_TRUE(contains(joined.error().message, sentence)) << "'" << sentence << "' in: " << joined.error().message;
  }
}

// All fail so, but a rank that is no neighbour of the failed one may have been ready before. Then it hears of the
// failure like of any later one.
void expect_all_hear(const std::vector<Joined>& results, Code code, const std::string& sentence) {
  for (const Joined& joined : results) {
    const Error error = joined.ok() ? joined.value()->cause_of({Code::kTimeout, "nothing"}) : joined.error();
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_TRUE(contains(error.message, sentence)) << "'" << sentence << "' in: " << error.message;
  }
}

class DeathTest : public testing::TestWithParam<int32_t> {};

// Most of the seven ranks are no neighbours of the dead rank. The neighbours give up and exit before the others have
// heard the reason.
TEST_P(DeathTest, BeforeItIsConnectedIsToldToAll) {
  const UniqueIdBytes id = loopback_id();
  Ghost ghost(id, 8, GetParam());
  const auto results = join_with_ghost(8, GetParam(), id, [&] {
    ASSERT_TRUE(ghost.authenticate().ok());
    ghost.ask();
    EXPECT_EQ(ghost.hear().error.code, Code::kSuccess);
    ghost.die();
  });
  expect_all_hear(results, Code::kRemoteError, ghost.name() + " ended while the communicator was being made");
}

TEST_P(DeathTest, AtTheRendezvousIsToldToAll) {
  const UniqueIdBytes id = loopback_id();
  Ghost ghost(id, 9, GetParam());
  auto configs = configs_for(9, id);
  configs.erase(configs.begin() + GetParam());
  configs.pop_back();  // another one never comes, so the ghost dies before all are there
  std::thread haunting([&] {
    ASSERT_TRUE(ghost.authenticate().ok());
    ghost.ask();
    ghost.die();
  });
  expect_all_say(join_all(configs), Code::kRemoteError, ghost.name() + " disconnected before all ");
  haunting.join();
}

TEST_P(DeathTest, AFailureIsToldInTheWordsOfWhoFailed) {
  const UniqueIdBytes id = loopback_id();
  Ghost ghost(id, 8, GetParam());
  const auto results = join_with_ghost(8, GetParam(), id, [&] {
    ASSERT_TRUE(ghost.authenticate().ok());
    ghost.ask();
    EXPECT_EQ(ghost.hear().error.code, Code::kSuccess);
    ghost.report({Code::kSystemError, "the ghost has no memory"});
  });
  expect_all_hear(results, Code::kSystemError, "the ghost has no memory");
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeathTest, testing::Values(0, 3, 7));

TEST(CauseTest, TheCauseFromAnotherRankIsPreferred) {
  BootstrapConfig config;
  config.nranks = 5;
  auto ranks = Bootstrap::join_in_process(config).value();
  const Error own{Code::kRemoteError, "rank 1 closed the connection"};
  ranks[0]->fail({Code::kRemoteError, "rank 3 died"});
  on_each_rank(ranks, [&](Bootstrap& rank) { EXPECT_EQ(rank.cause_of(own).message, "rank 3 died"); });
  auto quiet = Bootstrap::join_in_process(config).value();
  EXPECT_EQ(quiet[2]->cause_of(own).message, own.message);
}

// A rank had no processor until its deadline had passed. No other rank has made it wait.
TEST(CauseTest, WhatHasArrivedCountsAfterTheDeadline) {
  BootstrapConfig config;
  config.nranks = 2;
  auto ranks = Bootstrap::join_in_process(config).value();
  std::thread other([&] { EXPECT_TRUE(ranks[0]->barrier(kNoDeadline).ok()); });
  pollfd arrived{ranks[1]->event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&arrived, 1, -1), 1);
  const Status late = ranks[1]->barrier(0);
  EXPECT_TRUE(late.ok()) << late.error().message;
  other.join();
}

TEST(MissingRankTest, RefusalsForTheSecretAreCountedAndSaid) {
  const std::string missing = "rank 2 did not come to the rendezvous of the unique id at ";
  const auto results = join_until_told(missing, [](int64_t deadline_ns) {
    const UniqueIdBytes id = loopback_id();
    for (int32_t i = 0; i < 3; ++i) {
      Ghost stranger(id, 3, i < 2 ? 2 : 0);
      stranger.forget_secret();
      EXPECT_FALSE(stranger.authenticate().ok());
    }
    std::vector<BootstrapConfig> configs = {loopback_config(3, 0, id), loopback_config(3, 1, id)};
    configs[0].deadline_ns = deadline_ns;
    return configs;
  });
  expect_all_say(results, Code::kTimeout, missing);
  expect_all_say(results, Code::kTimeout,
                 "3 connections were refused because they did not know the secret, from 127.0.0.1 (as rank 2), "
                 "127.0.0.1 (as rank 0)");
  expect_all_say(results, Code::kTimeout, "TRESTLE_SECRET");
}

SocketAddress address_of(const UniqueIdBytes& id) {
  return decode(id).value().addresses.front();
}

// Whether a rendezvous ends before it has dropped this many strangers one after the other. Each stranger has five
// seconds.
bool ends_within(const SocketAddress& address, int strangers) {
  for (int i = 0; i < strangers; ++i) {
    const Result<UniqueFd> stranger = connect_before({&address, 1}, {monotonic_clock().now_ns() + kSecond / 10, {}});
    if (!stranger.ok()) return true;
    pollfd dropped{stranger.value().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&dropped, 1, -1), 1);
  }
  return false;
}
constexpr int kStrangers = 8;  // twelve would take a minute

TEST(EndTest, WhoDiedIsNotWaitedForByAFailedRendezvous) {
  const UniqueIdBytes id = loopback_id();
  Ghost ghost(id, 3, 1);
  ASSERT_TRUE(ghost.authenticate().ok());
  ghost.ask();
  ghost.die();
  auto configs = configs_for(3, id);
  configs.erase(configs.begin() + 1);
  expect_all_say(join_all(configs), Code::kRemoteError, ghost.name() + " disconnected before all ");
  EXPECT_TRUE(ends_within(address_of(id), kStrangers));
}

// Late ranks are answered as long as the ranks were ready to wait, which was short here.
TEST(EndTest, AFailedRendezvousStaysNoLongerThanItsRanksWaited) {
  const UniqueIdBytes id = loopback_id();
  BootstrapConfig config = loopback_config(2, 0, id);
  config.deadline_ns = monotonic_clock().now_ns() + kSecond / 4;
  expect_all_say(join_all({config}), Code::kTimeout, "rank 1 did not come");
  EXPECT_TRUE(ends_within(address_of(id), kStrangers));
}

// For example a rank that was stopped until its deadline. The rendezvous of its process would wait for it forever.
TEST(EndTest, ARankThatFailsBeforeItComesEndsTheRendezvousOfItsProcess) {
  const UniqueIdBytes id = loopback_id();
  Ghost ghost(id, 2, 1);
  ASSERT_TRUE(ghost.authenticate().ok());
  ghost.ask();
  BootstrapConfig config = loopback_config(2, 0, id);
  config.deadline_ns = 0;
  EXPECT_FALSE(Bootstrap::join(config).ok());
  EXPECT_TRUE(contains(ghost.hear().error.message, "rank 0 (host ")) << "the other rank is not told";
  ghost.die();
  EXPECT_TRUE(ends_within(address_of(id), kStrangers));
}

TEST(EndTest, RanksMeetAgainWhereTheyHaveFailed) {
  const std::string place = format_address(taken_port().address);  // the port is free again
  auto configs = configs_for(3, {});
  for (BootstrapConfig& config : configs) config.communicator_id = place;
  BootstrapConfig wrong = configs[1];
  wrong.nranks = 4;
  expect_all_say(join_all({configs[0], wrong, configs[2]}), Code::kInvalidArgument, " says ");
  EXPECT_EQ(all_of(join_all(configs)).size(), 3u);
}

// A child process that holds the rendezvous. It fails when it is told to, and exits at once.
class Holder {
 public:
  Holder() {
    int to_child[2];
    int to_parent[2];
    EXPECT_EQ(pipe(to_child), 0);
    EXPECT_EQ(pipe(to_parent), 0);
    child_ = fork();
    if (child_ == 0) {
      close(to_child[1]);  // or it would not notice that the parent has ended
      close(to_parent[0]);
      hold(to_child[0], to_parent[1]);
    }
    go_ = to_child[1];
    close(to_child[0]);
    close(to_parent[1]);  // so a child that dies is no hang
    EXPECT_EQ(read(to_parent[0], id.data(), id.size()), static_cast<ssize_t>(id.size()));
    close(to_parent[0]);
  }
  ~Holder() {
    close(go_);
    int ended = 0;
    EXPECT_EQ(waitpid(child_, &ended, 0), child_);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  }
  void fail_now() const { EXPECT_EQ(write(go_, "g", 1), 1); }

  UniqueIdBytes id{};

 private:
  [[noreturn]] static void hold(int go, int ready) {
    // As watch_forks() has it: the child does not use what it inherits. It would join threads of its parent's servers.
    fork_internal::generation.fetch_add(1);
    const UniqueIdBytes made = loopback_id();
    char byte = 0;
    bool well = write(ready, made.data(), made.size()) == static_cast<ssize_t>(made.size());
    well = well && read(go, &byte, 1) == 1;
    const auto results = join_all({loopback_config(4, 0, made), loopback_config(4, 0, made)});
    _exit(well && !results[0].ok() && !results[1].ok() ? 0 : 1);
  }
  pid_t child_ = -1;
  int go_ = -1;
};

TEST(HolderTest, TellsThoseAtItsDoorBeforeItsOwnFailureEndsIt) {
  const Holder holder;
  Ghost arrived(holder.id, 4, 1);
  ASSERT_TRUE(arrived.authenticate().ok());
  arrived.ask();
  Ghost proved(holder.id, 4, 2);  // has not sent its request yet
  ASSERT_TRUE(proved.authenticate().ok());
  Ghost queued(holder.id, 4, 3);  // connected only
  holder.fail_now();
  // The first answer comes after the holder has failed.
  EXPECT_TRUE(contains(arrived.hear().error.message, "two processes joined as rank 0"));
  ASSERT_TRUE(queued.authenticate().ok());
  queued.ask();
  proved.ask();
  EXPECT_TRUE(contains(proved.hear().error.message, "two processes joined as rank 0"));
  EXPECT_TRUE(contains(queued.hear().error.message, "two processes joined as rank 0"));
}

}  // namespace
}  // namespace failure_test
}  // namespace trestle
