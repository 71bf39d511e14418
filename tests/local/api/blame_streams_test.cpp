// A call waits on its stream behind a call of another communicator. Or it is not made, because its thread waits for
// one, tests one in a loop, or has seen one fail. The rank that is to blame there is also to blame here.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <thread>
#include <vector>

#include "local/api/ending.h"
#include "support/ranks.h"

namespace api {
namespace blame_streams_test {
namespace {

using ranks::contains;
using ranks::succeeded;

constexpr int kRanks = 3;
constexpr int kVictim = 2;
constexpr size_t kCount = 1000;

// A communicator of the world's ranks in reverse order. Its deadline passes long before the world's.
trestleComm_t mirror(trestleComm_t world, int rank, int64_t timeout_ms) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.timeoutMs = timeout_ms;
  trestleComm_t made = nullptr;
  EXPECT_TRUE(succeeded(trestleCommSplit(world, 0, -rank, &made, &config), world));
  return made;
}

// How rank 1 is blocked in the world.
enum class Way { kStream, kThread, kPoll, kFailed };

// On one stream: a receive of a message that the victim never sends, followed by a send that rank 0 waits for in the
// other communicator.
void hold_up(trestleComm_t world, trestleComm_t mirrored, std::vector<float>& data) {
  trestleStream_t stream = nullptr;
  ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
  ASSERT_TRUE(succeeded(trestleRecv(data.data(), kCount, trestleFloat32, kVictim, world, stream), world));
  ASSERT_TRUE(succeeded(trestleSend(data.data(), kCount, trestleFloat32, kRanks - 1, mirrored, stream), mirrored));
}

// On a thread of its own, which ends with the process.
void wait_in(trestleComm_t world, bool polls) {
  std::thread([world, polls] {
    std::vector<float> data(kCount);
    trestleStream_t stream = nullptr;
    (void)trestleStreamCreate(&stream);
    (void)trestleRecv(data.data(), kCount, trestleFloat32, kVictim, world, stream);
    while (polls && trestleStreamQuery(stream) == trestleInProgress) std::this_thread::yield();
    (void)trestleStreamSynchronize(stream);
    for (;;) pause();
  }).detach();
}

// The call fails at the world's deadline, and the program does not go on.
void fail_in(trestleComm_t world, std::vector<float>& data) {
  EXPECT_EQ(trestleRecv(data.data(), kCount, trestleFloat32, kVictim, world, nullptr), trestleSuccess);
  EXPECT_EQ(trestleCommSynchronize(world), trestleTimeout);
}

std::string failure_of(trestleComm_t comm) {
  trestleResult_t state = trestleSuccess;
  ranks::wait_until(
      [&] { return trestleCommGetAsyncError(comm, &state) != trestleSuccess || state != trestleSuccess; });
  EXPECT_EQ(state, trestleTimeout);
  return trestleGetLastError(comm);
}

// The sentences of ranks 0 and 1 after the victim has done `end`.
std::vector<std::string> sentences(Way way, void (*end)()) {
  // Both communicators must be made by these deadlines.
  const int64_t mirror_ms = ranks::patient_ms(kRanks, 1500);
  const int64_t world_ms = way == Way::kFailed ? ranks::patient_ms(kRanks, 1000) : 60'000;
  ranks::Job job;
  job.ranks = kRanks;
  job.stopped = {kVictim};
  job.body = [way, end, mirror_ms, world_ms](ranks::Process& process) {
    trestleComm_t world = nullptr;
    const ranks::Settings settings{.ranks = kRanks, .transport = "tcp", .timeout_ms = world_ms};
    ASSERT_TRUE(succeeded(ranks::join(process, settings, &world)));
    const trestleComm_t mirrored = mirror(world, process.rank, mirror_ms);
    ranks::meet(process.board, kRanks);
    if (process.rank == kVictim) end();
    std::vector<float> data(kCount, 1.0f);
    if (process.rank == 1 && way == Way::kStream) hold_up(world, mirrored, data);
    if (process.rank == 1 && (way == Way::kThread || way == Way::kPoll)) wait_in(world, way == Way::kPoll);
    if (process.rank == 1 && way == Way::kFailed) fail_in(world, data);
    ranks::meet(process.board, kRanks - 1);
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(trestleRecv(data.data(), kCount, trestleFloat32, 1, mirrored, nullptr), mirrored));
    }
    process.result = failure_of(mirrored);
    ranks::meet(process.board, kRanks - 1);  // no rank may hear of an end before it has failed itself
    trestleCommAbort(mirrored);
    trestleCommAbort(world);
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, {kVictim});
  return {outcomes[0].result, outcomes[1].result};
}

[[noreturn]] void stand_still() {
  ending::end_now(SIGSTOP);
}

[[noreturn]] void call_nothing() {
  for (;;) pause();
}

TEST(ApiBlameStreams, ARankThatStandsStillInTheOneIsNamedInTheOther) {
  for (const Way way : {Way::kStream, Way::kThread, Way::kPoll, Way::kFailed}) {
    for (const std::string& sentence : sentences(way, stand_still)) {
      std::cout << sentence << "\n";
      EXPECT_TRUE(sentence.starts_with("rank 0 (")) << sentence;
      EXPECT_TRUE(contains(sentence, " is frozen or very slow")) << sentence;
    }
  }
}

TEST(ApiBlameStreams, ARankThatDoesNotCallInTheOneIsNamedInTheOther) {
  for (const Way way : {Way::kStream, Way::kThread, Way::kPoll}) {
    for (const std::string& sentence : sentences(way, call_nothing)) {
      std::cout << sentence << "\n";
      EXPECT_TRUE(sentence.starts_with("rank 0 (")) << sentence;
      EXPECT_TRUE(contains(sentence, "has not called the Send that matches message 0")) << sentence;
      EXPECT_TRUE(contains(sentence, "of another communicator")) << sentence;
    }
  }
}

}  // namespace
}  // namespace blame_streams_test
}  // namespace api
