// A rank does not come to the rendezvous, or stops or dies there. The others name it and the place, in the terms in
// which the place was given.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "local/api/ending.h"
#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace blame_join_test {
namespace {

constexpr int kRanks = 4;

// The way in which the ranks learn the place of the rendezvous.
struct Way {
  ranks::Env env;
  std::string place;  // its name in the sentences
};

Way by_launcher(uint16_t port) {
  const std::string text = std::to_string(port);
  return {{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", text}},
          "the rendezvous at 127.0.0.1:" + text + " (MASTER_ADDR, MASTER_PORT)"};
}

Way by_address(uint16_t port) {
  const std::string text = "127.0.0.1:" + std::to_string(port);
  return {{{"TRESTLE_COMM_ID", text}}, "the rendezvous at " + text + " (TRESTLE_COMM_ID)"};
}

Way by_store(const std::string& path) {
  return {{{"TRESTLE_STORE", "file:" + path}}, "the rendezvous file:" + path + " (TRESTLE_STORE)"};
}

// Returns every survivor's sentence. `end` runs on the victim before any call of the library.
std::vector<std::string> sentences(const Way& way, int victim, const std::function<void()>& end) {
  // The other ranks must come in time.
  const ranks::Settings settings = ranks::patient({.ranks = kRanks, .timeout_ms = 1500});
  ranks::Job job;
  job.ranks = kRanks;
  job.stopped = {victim};
  job.env = [&](int rank) {
    ranks::Env env = way.env;
    env.insert({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(kRanks)}, {"LOCAL_RANK", "0"}});
    return env;
  };
  job.body = [&](ranks::Process& process) {
    if (process.rank == victim) end();
    trestleComm_t comm = nullptr;
    const trestleConfig_t config = ranks::config_of(settings);
    const trestleResult_t result = trestleCommInitRankConfig(&comm, kRanks, trestleUniqueId{}, process.rank, &config);
    EXPECT_NE(result, trestleSuccess);
    process.result = trestleGetLastError(nullptr);
    ranks::meet(process.board, kRanks - 1);
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, {victim});
  std::vector<std::string> all;
  for (int r = 0; r < kRanks; ++r) {
    if (r != victim) all.push_back(outcomes[static_cast<size_t>(r)].result);
    if (r != victim) std::cout << "rank " << r << ": " << all.back() << "\n";
  }
  return all;
}

void expect_missed(const Way& way, int victim) {
  SCOPED_TRACE(way.place);
  for (const std::string& sentence : sentences(way, victim, [] { ending::end_now(SIGSTOP); })) {
    EXPECT_TRUE(sentence.starts_with("rank " + std::to_string(victim) + " did not come to " + way.place + " in time"))
        << sentence;
  }
}

TEST(ApiBlameJoin, ARankThatDoesNotComeIsNamedWithThePlace) {
  for (const int victim : {0, 2}) {
    expect_missed(by_launcher(free_port(8)), victim);
    expect_missed(by_address(free_port()), victim);
    const TemporaryFolder directory;
    expect_missed(by_store(directory.path()), victim);
  }
}

// Rank 0 has opened the rendezvous, so others connect to it.
TEST(ApiBlameJoin, Rank0ThatStandsStillOrDiesAtTheRendezvousIsNamed) {
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const int message : {1, 2, 4, 6, 9}) {
      SCOPED_TRACE(testing::Message() << "signal " << signal << ", message " << message);
      const Way way = (message % 2 == 0) == (signal == SIGKILL) ? by_launcher(free_port(8)) : by_address(free_port());
      for (const std::string& sentence : sentences(way, 0, [&] { ending::end_at_message(message, signal); }))
        EXPECT_TRUE(sentence.starts_with("rank 0 ")) << sentence;
    }
  }
}

// The other ranks do not know which process made the id.
TEST(ApiBlameJoin, TheProcessThatMadeTheIdIsNamedWhenItIsGone) {
  ranks::Job job;
  job.ranks = 2;
  job.body = [](ranks::Process& process) {
    const trestleUniqueId& id = ranks::id_of(process);
    if (process.rank == 0) return;
    trestleComm_t comm = nullptr;
    const trestleConfig_t config = ranks::config_of({.ranks = 2, .timeout_ms = 1500});
    EXPECT_NE(trestleCommInitRankConfig(&comm, 2, id, 1, &config), trestleSuccess);
    const std::string sentence = trestleGetLastError(nullptr);
    EXPECT_TRUE(sentence.starts_with("the process that made the unique id (as a rule that of rank 0) ")) << sentence;
    EXPECT_TRUE(ranks::contains(sentence, "the rendezvous of the unique id at ")) << sentence;
  };
  ranks::expect_ended_well(ranks::run(job));
}

}  // namespace
}  // namespace blame_join_test
}  // namespace api
