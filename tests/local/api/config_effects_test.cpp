// Fields of the config struct with free text: their effect if the variable has another value or none.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "conformance/api_call.h"
#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace config_effects_test {
namespace {

using ranks::refused;
using ranks::succeeded;

constexpr int64_t kTimeoutMs = 20'000;

trestleConfig_t config_of(const std::function<void(trestleConfig_t&)>& change) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.timeoutMs = kTimeoutMs;
  change(config);
  return config;
}

// Processes that each join with an id of zeros and their own struct. `then` gets the result.
using Change = std::function<void(trestleConfig_t&, int rank)>;
using Then = std::function<void(ranks::Process&, trestleResult_t, trestleComm_t)>;
std::vector<ranks::Outcome> meet_without_id(int n, const Change& change, const Then& then) {
  ranks::Job job;
  job.ranks = n;
  job.body = [&](ranks::Process& process) {
    const trestleConfig_t config = config_of([&](trestleConfig_t& c) { change(c, process.rank); });
    trestleComm_t comm = nullptr;
    const trestleResult_t result = trestleCommInitRankConfig(&comm, n, trestleUniqueId{}, process.rank, &config);
    then(process, result, comm);
  };
  auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  return outcomes;
}

void expect_work(ranks::Process& process, trestleResult_t result, trestleComm_t comm) {
  ASSERT_TRUE(succeeded(result));
  run_and_verify({.count = 1000}, process.rank, process.ranks, comm);
  EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

TEST(ApiConfigEffects, CommIdIsWhereRanksMeet) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  meet_without_id(
      3, [&](trestleConfig_t& config, int) { config.commId = address.c_str(); }, expect_work);
}

TEST(ApiConfigEffects, StoreIsWhereRanksMeet) {
  const TemporaryFolder folder;
  const std::string store = "file:" + folder.path() + "/store";
  meet_without_id(
      3, [&](trestleConfig_t& config, int) { config.store = store.c_str(); }, expect_work);
}

// Ranks with equal secrets meet. Ranks with different ones do not, and the sentence names the variable that differs.
TEST(ApiConfigEffects, SecretIsTheSameOnAllRanks) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  const auto change = [&](bool same, int timeout_ms) {
    return [&address, same, timeout_ms](trestleConfig_t& config, int rank) {
      config.commId = address.c_str();
      config.secret = same || rank == 0 ? "of one" : "of the other";
      config.timeoutMs = timeout_ms;
    };
  };
  meet_without_id(2, change(true, kTimeoutMs), expect_work);
  // A rank that starts so late that the other has left cannot know the reason. Then the test tries again with more
  // time.
  std::vector<ranks::Outcome> outcomes;
  const auto named = [](const ranks::Outcome& outcome) { return ranks::contains(outcome.result, "TRESTLE_SECRET"); };
  for (int timeout_ms = 1000; timeout_ms <= 16'000; timeout_ms *= 2) {
    outcomes = meet_without_id(2, change(false, timeout_ms),
                               [](ranks::Process& process, trestleResult_t result, trestleComm_t comm) {
                                 EXPECT_NE(result, trestleSuccess);
                                 EXPECT_EQ(comm, nullptr);
                                 process.result = trestleGetLastError(nullptr);
                               });
    if (std::all_of(outcomes.begin(), outcomes.end(), named)) return;
  }
  for (const ranks::Outcome& outcome : outcomes) EXPECT_TRUE(named(outcome)) << outcome.result;
}

// Shared memory does not reach another host, and this field defines the host.
TEST(ApiConfigEffects, HostIdSaysWhoSharesMemory) {
  for (const bool same : {true, false}) {
    const std::string address = "127.0.0.1:" + std::to_string(free_port());
    const auto change = [&](trestleConfig_t& config, int rank) {
      config.commId = address.c_str();
      config.transport = "shm";
      config.hostId = same || rank == 0 ? "left" : "right";
    };
    if (same) {
      meet_without_id(2, change, expect_work);
      continue;
    }
    meet_without_id(2, change, [](ranks::Process&, trestleResult_t result, trestleComm_t) {
      EXPECT_TRUE(refused(result, trestleInvalidArgument, {"shm", "rank 0", "rank 1"}));
    });
  }
}

// The number of this process's sockets that use a congestion control.
int sockets_with(const std::string& congestion) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    char name[64] = {};
    socklen_t bytes = sizeof name - 1;
    const int fd = std::atoi(entry.path().filename().c_str());
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &bytes) == 0 && name == congestion) ++count;
  }
  return count;
}

// Every Linux has reno and allows it for every user.
TEST(ApiConfigEffects, CongestionIsWhatDataConnectionsUse) {
  ranks::isolated([] {
    const trestleConfig_t config = config_of([](trestleConfig_t& c) {
      c.transport = "tcp";
      c.socketIfname = "=lo";
      c.congestion = "reno";
    });
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    float send[2] = {1, 1}, recv[2] = {};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(succeeded(trestleAllReduce(&send[r], &recv[r], 1, trestleFloat32, trestleSum, comms[r], nullptr)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_GE(sockets_with("reno"), 2);
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

// A message that would be sent at once by default waits for its receiver.
TEST(ApiConfigEffects, EagerBytesOfZeroMakesASendWait) {
  ranks::isolated([] {
    const trestleConfig_t config = config_of([](trestleConfig_t& c) { c.transport = "shm", c.eagerBytes = 0; });
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    trestleStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
    int32_t send = 7, recv = 0;
    ASSERT_TRUE(succeeded(trestleSend(&send, 1, trestleInt32, 1, comms[0], stream)));
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(trestleStreamQuery(stream), trestleInProgress) << "look " << i;
    ASSERT_TRUE(succeeded(trestleRecv(&recv, 1, trestleInt32, 0, comms[1], nullptr)));
    for (trestleComm_t comm : {comms[1], comms[0]}) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv, 7);
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace config_effects_test
}  // namespace api
