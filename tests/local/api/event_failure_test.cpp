// An event, a stream and a request report the failure of their work, for every cause and every way to ask.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "support/ranks.h"

namespace api {
namespace event_failure_test {
namespace {

using ranks::refused;
using ranks::succeeded;

constexpr size_t kCount = 300'000;

enum class Cause { kKilledPeer, kDeadline, kAbortByPeer, kAbortHere, kDestroyedHere, kReduction };

struct Case {
  const char* name;
  Cause cause;
  trestleResult_t code;
};
const Case kCases[] = {
    {"killed peer", Cause::kKilledPeer, trestleRemoteError},
    {"deadline", Cause::kDeadline, trestleTimeout},
    {"abort by peer", Cause::kAbortByPeer, trestleAborted},
    {"abort here", Cause::kAbortHere, trestleAborted},
    {"abort by peer while destroyed here", Cause::kDestroyedHere, trestleAborted},
    {"reduction", Cause::kReduction, trestleReductionFailed},
};

// Signals between the two ranks outside the library.
enum Word : size_t { kReady, kCalled, kObserved, kReductionFails };

int sum_until_told(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void* context) {
  if (static_cast<ranks::Board*>(context)->word[kReductionFails].load() != 0) return 1;
  for (size_t i = 0; i < count; ++i) {
    float total = 0;
    for (int s = 0; s < k; ++s) total += static_cast<const float*>(sources[s])[i];
    static_cast<float*>(dst)[i] = total;
  }
  return 0;
}

// One rank's calls, which need the other rank. The calls end with the communicator, and the buffers live longer.
struct Calls {
  std::vector<float> data = std::vector<float>(kCount * 5, 1.0F);
  trestleRedOp_t op = trestleSum;
  trestleStream_t stream = nullptr, grouped = nullptr, halved = nullptr;
  trestleRequest_t request = nullptr;

  explicit Calls(trestleComm_t comm, ranks::Board& board) {
    for (trestleStream_t* s : {&stream, &grouped, &halved}) EXPECT_TRUE(succeeded(trestleStreamCreate(s)));
    EXPECT_TRUE(succeeded(trestleRedOpCreate(&op, &sum_until_told, &board, 1, comm)));
  }
  trestleResult_t reduce(size_t index, trestleComm_t comm, trestleStream_t on) {
    float* at = data.data() + index * kCount;
    return trestleAllReduce(at, at, kCount, trestleFloat32, op, comm, on);
  }
  void make(trestleComm_t comm) {
    EXPECT_TRUE(succeeded(reduce(0, comm, stream), comm));
    EXPECT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(reduce(1, comm, grouped), comm));
    EXPECT_TRUE(succeeded(reduce(2, comm, grouped), comm));
    EXPECT_TRUE(succeeded(trestleGroupEnd(), comm));
  }
  // If there is a deadline, this call's passes first.
  void make_last(trestleComm_t comm, int64_t timeout_ms) {
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.timeoutMs = timeout_ms;
    EXPECT_TRUE(succeeded(trestleCallConfigPush(&config)));
    float* at = data.data() + 3 * kCount;
    EXPECT_TRUE(
        succeeded(trestleAllReduceStart(at, at + kCount, kCount, trestleFloat32, op, comm, halved, &request), comm));
    EXPECT_TRUE(succeeded(trestleCallConfigPop()));
  }
};

void warm_up(trestleComm_t comm) {
  float x = 1;
  ASSERT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
}

// Ends with its communicator, unless it is killed.
void culprit(const Case& c, trestleComm_t comm, ranks::Board& board) {
  warm_up(comm);
  Calls calls(comm, board);
  board.word[kReady] = 1;
  ranks::wait_until([&] { return board.word[kCalled].load() != 0; });
  if (c.cause == Cause::kKilledPeer) kill(getpid(), SIGKILL);
  if (c.cause == Cause::kReduction) {
    board.word[kReductionFails] = 1;
    EXPECT_TRUE(succeeded(calls.reduce(0, comm, nullptr), comm));
    EXPECT_EQ(trestleCommSynchronize(comm), trestleReductionFailed);
  }
  const bool at_once = c.cause == Cause::kAbortByPeer || c.cause == Cause::kDestroyedHere;
  if (!at_once) ranks::wait_until([&] { return board.word[kObserved].load() != 0; });
  EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
}

trestleEvent_t event_behind(trestleStream_t stream) {
  trestleEvent_t event = nullptr;
  EXPECT_TRUE(succeeded(trestleEventCreate(&event)));
  EXPECT_TRUE(succeeded(trestleEventRecord(event, stream)));
  return event;
}

struct Alone {
  trestleComm_t comm = nullptr;
  Alone() { EXPECT_TRUE(succeeded(trestleCommInitAll(&comm, 1, nullptr))); }
  ~Alone() { EXPECT_TRUE(succeeded(trestleCommDestroy(comm))); }
};

// Calls of other communicators on the stream that has failed.
void expect_stream_closed_until_told(const Case& c, trestleStream_t stream, trestleEvent_t event) {
  const Alone healthy;
  float x = 2;
  float y = 3;
  const auto call = [&] { return trestleAllReduce(&x, &y, 1, trestleFloat32, trestleSum, healthy.comm, stream); };
  EXPECT_TRUE(refused(call(), c.code, {"until StreamSynchronize"}));
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  EXPECT_TRUE(succeeded(call()));
  EXPECT_TRUE(refused(trestleGroupEnd(), c.code, {"until StreamSynchronize"}));
  ASSERT_TRUE(succeeded(trestleEventRecord(event, stream)));
  EXPECT_EQ(trestleEventSynchronize(event), c.code) << "recorded on an idle stream, nobody was told";
  EXPECT_EQ(y, 3);
  EXPECT_EQ(trestleStreamSynchronize(stream), c.code);
  EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream))) << "told";
  EXPECT_EQ(trestleEventQuery(event), c.code) << "an event keeps it until it is recorded again";
  EXPECT_TRUE(succeeded(call()));
  ASSERT_TRUE(succeeded(trestleEventRecord(event, stream)));
  EXPECT_TRUE(succeeded(trestleEventSynchronize(event)));
  EXPECT_EQ(y, 2);
}

void end_here(const Case& c, trestleComm_t comm) {
  EXPECT_TRUE(succeeded(c.cause == Cause::kAbortHere ? trestleCommAbort(comm) : trestleCommDestroy(comm)));
}

void observe(const Case& c, trestleComm_t comm, ranks::Board& board) {
  warm_up(comm);
  Calls calls(comm, board);
  trestleStream_t waiting = nullptr;
  ASSERT_TRUE(succeeded(trestleStreamCreate(&waiting)));
  trestleEvent_t before = event_behind(calls.stream);
  ranks::wait_until([&] { return board.word[kReady].load() != 0; });
  calls.make(comm);
  trestleEvent_t behind = event_behind(calls.stream);
  trestleEvent_t grouped = event_behind(calls.grouped);
  ASSERT_TRUE(succeeded(trestleStreamWaitEvent(waiting, behind)));
  trestleEvent_t handed = event_behind(waiting);
  // Uses the result of the others, on a communicator whose ranks know nothing of the failure.
  Alone next;
  float x = 2;
  float y = 3;
  ASSERT_TRUE(succeeded(trestleAllReduce(&x, &y, 1, trestleFloat32, trestleSum, next.comm, waiting)));
  calls.make_last(comm, c.cause == Cause::kDeadline ? 200 : -1);
  board.word[kCalled] = 1;
  std::thread ender;
  const bool ended_here = c.cause == Cause::kAbortHere || c.cause == Cause::kDestroyedHere;
  if (ended_here) ender = std::thread([&] { end_here(c, comm); });

  EXPECT_EQ(trestleEventSynchronize(behind), c.code);
  const std::string sentence = trestleGetLastError(nullptr);
  EXPECT_FALSE(sentence.empty());
  if (ended_here) ender.join();
  EXPECT_EQ(sentence, trestleGetLastError(ended_here ? nullptr : comm));
  for (trestleEvent_t event : {behind, grouped, handed}) {
    EXPECT_EQ(trestleEventSynchronize(event), c.code);
    EXPECT_EQ(trestleGetLastError(nullptr), sentence);
    EXPECT_EQ(trestleEventQuery(event), c.code);
    EXPECT_EQ(trestleGetLastError(nullptr), sentence);
  }
  EXPECT_TRUE(succeeded(trestleEventSynchronize(before)));
  EXPECT_TRUE(succeeded(trestleEventQuery(before)));
  int done = 7;
  EXPECT_EQ(trestleRequestWait(calls.request), c.code);
  EXPECT_EQ(trestleRequestTest(calls.request, &done), c.code);
  EXPECT_TRUE(succeeded(trestleRequestFree(calls.request)));
  const trestleResult_t held = c.code == trestleAborted ? trestleRemoteError : c.code;
  EXPECT_TRUE(refused(trestleCommSynchronize(next.comm), held, {"was not run", sentence}, next.comm));
  EXPECT_EQ(y, 3);
  expect_stream_closed_until_told(c, calls.stream, behind);
  EXPECT_EQ(trestleStreamQuery(waiting), c.code);
  EXPECT_TRUE(succeeded(trestleStreamQuery(waiting)));
  EXPECT_EQ(trestleStreamSynchronize(calls.grouped), c.code);
  board.word[kObserved] = 1;
  if (!ended_here) {
    EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
  }
  for (trestleStream_t stream : {calls.stream, calls.grouped, waiting}) {
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
  }
  EXPECT_EQ(trestleStreamDestroy(calls.halved), c.code) << "nobody was told";
  for (trestleEvent_t event : {before, behind, grouped, handed}) EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
}

void run_rank(const Case& c, int rank, trestleComm_t comm, ranks::Board& board) {
  if (rank == 0) return observe(c, comm, board);
  culprit(c, comm, board);
}

class ApiEventFailures : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, ApiEventFailures, testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& letter : name) letter = letter == ' ' ? '_' : letter;
  return name;
});

TEST_P(ApiEventFailures, AreToldBetweenProcesses) {
  for (const char* transport : {"shm", "tcp"}) {
    SCOPED_TRACE(transport);
    ranks::Job job{.ranks = 2};
    job.body = [&](ranks::Process& process) {
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = transport}, &comm)));
      run_rank(GetParam(), process.rank, comm, process.board);
    };
    const bool killed = GetParam().cause == Cause::kKilledPeer;
    ranks::expect_ended_well(ranks::run(job), killed ? std::vector<int>{1} : std::vector<int>{});
  }
}

TEST_P(ApiEventFailures, AreToldBetweenThreads) {
  if (GetParam().cause == Cause::kKilledPeer) GTEST_SKIP() << "a thread does not die alone";
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    SCOPED_TRACE(transport);
    ranks::isolated([&] {
      const ranks::Settings settings{.ranks = 2, .transport = transport};
      const trestleConfig_t config = ranks::config_of(settings);
      trestleComm_t comms[2] = {};
      ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
      ranks::Board board{};
      std::thread other([&] { run_rank(GetParam(), 1, comms[1], board); });
      run_rank(GetParam(), 0, comms[0], board);
      other.join();
    });
  }
}

bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  return ranks::contains(text, ") S");
}

// Two threads wait for one stream. Both are told, not only the first.
TEST(ApiEventFailuresOfAStream, AreToldToEveryThreadThatWaits) {
  ranks::isolated([] {
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
    trestleStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
    std::vector<float> x(kCount);
    ASSERT_TRUE(succeeded(trestleAllReduce(x.data(), x.data(), kCount, trestleFloat32, trestleSum, comms[0], stream)));
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      std::atomic<pid_t> waiter{0};
      threads.emplace_back([&] {
        waiter = gettid();
        EXPECT_EQ(trestleStreamSynchronize(stream), trestleAborted);
      });
      ranks::wait_until([&] { return waiter.load() != 0 && sleeps(waiter.load()); });
    }
    EXPECT_TRUE(succeeded(trestleCommAbort(comms[1])));
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(succeeded(trestleCommAbort(comms[0])));
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
  });
}

}  // namespace
}  // namespace event_failure_test
}  // namespace api
