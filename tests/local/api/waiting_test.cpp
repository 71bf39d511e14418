// A rank that waits for others for long says for whom, in the log at its default level: at the rendezvous, in calls, and
// while a communicator is made.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <thread>

#include "local/api/ending.h"
#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace waiting_test {
namespace {

struct Way {
  const char* name;
  int late;              // the rank that comes when the other one has said the sentence
  const char* sentence;  // of the other one
};

class WaitingTest : public testing::TestWithParam<Way> {};

TEST_P(WaitingTest, IsSaid) {
  const Way& way = GetParam();
  const uint16_t port = free_port(8);
  const TemporaryFolder folder;
  folder.write("log", "");
  ranks::Job job;
  job.ranks = 2;
  job.env = [&](int rank) {
    ranks::Env env = {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", "0"},
                      {"TRESTLE_DEBUG_FILE", folder.path("log")},
                      {"MASTER_PORT", std::to_string(port)},
                      {"MASTER_ADDR", "127.0.0.1"}};
    if (way.name == std::string("Store")) env["TRESTLE_STORE"] = "file:" + folder.path("store");
    return env;
  };
  job.body = [&](ranks::Process& process) {
    if (process.rank == way.late)
      ranks::wait_until([&] { return ranks::contains(folder.content("log"), way.sentence); });
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitRank(&comm, 2, trestleUniqueId{}, process.rank)));
    EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job));
}

INSTANTIATE_TEST_SUITE_P(Ways, WaitingTest,
                         testing::Values(Way{"Root", 1, "1 of 2 ranks have come; missing: rank 1"},
                                         Way{"NoRoot", 0, "has waited 10 s for rank 0 at the rendezvous at 127.0.0.1:"},
                                         Way{"Store", 1, "has waited 10 s for rank 1 at file:"}),
                         [](const auto& one) { return std::string(one.param.name); });

// ---- in calls

constexpr int kRanks = 3;

using Call = std::function<trestleResult_t(trestleComm_t comm, const std::function<bool()>& said)>;

trestleResult_t all_reduce(trestleComm_t comm, trestleStream_t stream) {
  static std::vector<float> data(1000, 1);
  return trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, stream);
}

trestleResult_t wait_for_it(trestleComm_t comm, const std::function<bool()>&) {
  const trestleResult_t called = all_reduce(comm, nullptr);
  return called == trestleSuccess ? trestleCommSynchronize(comm) : called;
}

// The program does something else meanwhile.
trestleResult_t leave_it_alone(trestleComm_t comm, const std::function<bool()>& said) {
  const trestleResult_t called = all_reduce(comm, nullptr);
  ranks::wait_until(said);
  return called == trestleSuccess ? trestleCommSynchronize(comm) : called;
}

trestleResult_t split(trestleComm_t comm, const std::function<bool()>&) {
  trestleComm_t child = nullptr;
  const trestleResult_t made = trestleCommSplit(comm, 0, 0, &child, nullptr);
  return made == trestleSuccess ? trestleCommDestroy(child) : made;
}

trestleResult_t finalize(trestleComm_t comm, const std::function<bool()>&) {
  return trestleCommFinalize(comm);
}

struct CallWay {
  const char* name;
  Call call;
  const char* sentence;  // behind the name of rank 2
};

class WaitingInACallTest : public testing::TestWithParam<CallWay> {};

// Both other ranks blame rank 2, also the one that waits for the other one.
TEST_P(WaitingInACallTest, IsSaidWithTheRankToBlame) {
  const TemporaryFolder folder;
  folder.write("log", "");
  const auto said = [&](int rank) {
    const std::regex line("rank " + std::to_string(rank) + " \\([^)]*\\) has waited 10 s: rank 2 \\([^)]*\\) " +
                          GetParam().sentence);
    return std::regex_search(folder.content("log"), line);
  };
  const auto said_by_both = [&] { return said(0) && said(1); };
  const auto body = [&](ranks::Process& process, trestleComm_t comm) {
    if (process.rank == 2) ranks::wait_until(said_by_both);
    EXPECT_TRUE(ranks::succeeded(GetParam().call(comm, said_by_both), comm));
  };
  const auto env = [&](int) { return ranks::Env{{"TRESTLE_DEBUG_FILE", folder.path("log")}}; };
  ranks::on_processes({.ranks = kRanks}, body, env);
}

INSTANTIATE_TEST_SUITE_P(Calls, WaitingInACallTest,
                         testing::Values(CallWay{"Collective", wait_for_it, "has not called operation 0: "},
                                         CallWay{"CollectiveAlone", leave_it_alone, "has not called operation 0: "},
                                         CallWay{"Split", split, "has not called CommSplit"},
                                         CallWay{"Finalize", finalize, "has not called CommFinalize"}),
                         [](const auto& one) { return std::string(one.param.name); });

// ---- while a communicator is made

std::function<bool()> said_by_others;
std::thread::id splitting;

// The thread of the mesh goes on.
void stand_still() {
  if (std::this_thread::get_id() != splitting) return ending::call_at_message(1, stand_still);
  ranks::wait_until(said_by_others);
}

class WaitingForAChildTest : public testing::TestWithParam<int> {};

// Rank 2 stands still behind the n-th message of the split: before or after it is connected with the others.
TEST_P(WaitingForAChildTest, IsSaid) {
  const TemporaryFolder folder;
  folder.write("log", "");
  said_by_others = [&] {
    const std::string log = folder.content("log");
    const auto said = [&](int rank) {
      return std::regex_search(log, std::regex("rank " + std::to_string(rank) +
                                               " \\([^)]*\\) has waited 10 s.* rank 2 .*"
                                               "the communicator is being made"));
    };
    return said(0) && said(1);
  };
  const auto body = [&](ranks::Process& process, trestleComm_t comm) {
    splitting = std::this_thread::get_id();
    if (process.rank == 2) ending::call_at_message(GetParam(), stand_still);
    trestleComm_t child = nullptr;
    EXPECT_TRUE(ranks::succeeded(trestleCommSplit(comm, 0, 0, &child, nullptr), comm));
    EXPECT_EQ(trestleCommDestroy(child), trestleSuccess);
  };
  const auto env = [&](int) { return ranks::Env{{"TRESTLE_DEBUG_FILE", folder.path("log")}}; };
  ranks::on_processes({.ranks = kRanks}, body, env);
}

INSTANTIATE_TEST_SUITE_P(Messages, WaitingForAChildTest, testing::Values(12, 20));

}  // namespace
}  // namespace waiting_test
}  // namespace api
