// A user-defined reduction that does not return. While the function runs, its rank hears of events on the other ranks
// and tells them what it is running.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace user_function_test {
namespace {

using ranks::contains;
using ranks::refused;
using ranks::succeeded;

constexpr int kRanks = 4;
constexpr int kBlocked = 1;  // the rank whose function does not return
constexpr int kCulprit = 2;
constexpr size_t kCount = 300'000;
constexpr int64_t kLongMs = 300'000;  // the watchdog ends a rank that waits for this deadline

// Words on the board.
enum Word { kInside, kReturn, kEnded };

struct Blocker {
  ranks::Process* process;
  bool blocks;
};

int add_up(void* result, const void* const* sources, int count, size_t elements, trestleDataType_t, void* context) {
  const Blocker& blocker = *static_cast<const Blocker*>(context);
  if (blocker.blocks) {
    blocker.process->board.word[kInside].store(1);
    ranks::wait_until([&] { return blocker.process->board.word[kReturn].load() != 0; });
  }
  for (size_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (int s = 0; s < count; ++s) sum += static_cast<const float*>(sources[s])[i];
    static_cast<float*>(result)[i] = sum;
  }
  return 0;
}

trestleResult_t await_failure(trestleComm_t comm) {
  trestleResult_t result = trestleSuccess;
  ranks::wait_until([&] {
    EXPECT_EQ(trestleCommGetAsyncError(comm, &result), trestleSuccess);
    return result != trestleSuccess;
  });
  return result;
}

struct Case {
  const char* transport;
  // A thread waits for the call and runs the function. Else the library's own thread runs it.
  bool waited_for;
  trestleResult_t news;
  const char* rank_in_the_news;
};

std::ostream& operator<<(std::ostream& out, const Case& at) {
  return out << at.transport << (at.waited_for ? ", waited for" : ", not waited for");
}

trestleResult_t call(const ranks::Process& process, trestleComm_t comm, Blocker& blocker, std::vector<float>& data) {
  trestleRedOp_t op = trestleSum;
  EXPECT_TRUE(succeeded(trestleRedOpCreate(&op, add_up, &blocker, 1, comm), comm));
  data.assign(kCount, static_cast<float>(process.rank));
  return trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, op, comm, nullptr);
}

// The blocked rank. Its function returns only after the rank knows the news.
void hear_while_blocked(const Case& at, ranks::Process& process, trestleComm_t comm) {
  Blocker blocker{&process, true};
  std::vector<float> data;
  std::thread listener([&] {
    ranks::wait_until([&] { return process.board.word[kInside].load() != 0; });
    EXPECT_EQ(await_failure(comm), at.news) << trestleGetLastError(comm);
    const std::string sentence = trestleGetLastError(comm);
    EXPECT_TRUE(contains(sentence, at.rank_in_the_news)) << sentence;
    ranks::wait_until(
        [&] { return process.board.word[kEnded].load() == kRanks - (at.news == trestleTimeout ? 1 : 2); });
    process.board.word[kReturn].store(1);
  });
  trestleResult_t result = call(process, comm, blocker, data);
  if (!at.waited_for) listener.join();
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  EXPECT_EQ(result, at.news);
  if (at.waited_for) listener.join();
}

// The other ranks end their part before the function returns.
void hear(const Case& at, ranks::Process& process, trestleComm_t comm, const std::vector<std::string>& facts) {
  Blocker blocker{&process, false};
  std::vector<float> data;
  trestleResult_t result = call(process, comm, blocker, data);
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  EXPECT_TRUE(refused(result, at.news, facts, comm));
  process.board.word[kEnded].fetch_add(1);
}

void run_case(const Case& at, int64_t timeout_ms, const std::vector<std::string>& facts,
              const std::function<void(ranks::Process&, trestleComm_t)>& culprit) {
  SCOPED_TRACE(testing::Message() << at);
  ranks::Job job;
  job.ranks = kRanks;
  // On a ring every element passes through the functions of all ranks but one. So no rank completes without the blocked
  // one.
  const ranks::Settings settings{.ranks = kRanks, .transport = at.transport, .algo = "ring", .timeout_ms = timeout_ms};
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
    if (process.rank == kBlocked) {
      hear_while_blocked(at, process, comm);
    } else if (process.rank == kCulprit && culprit) {
      ranks::wait_until([&] { return process.board.word[kInside].load() != 0; });
      culprit(process, comm);
      return;
    } else {
      hear(at, process, comm, facts);
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  const std::vector<int> except =
      culprit && at.news == trestleRemoteError ? std::vector<int>{kCulprit} : std::vector<int>{};
  ranks::expect_ended_well(ranks::run(job), except);
}

TEST(ApiUserFunction, ARankHearsOfADeathWhileItsFunctionRuns) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool waited_for : {true, false}) {
      run_case({transport, waited_for, trestleRemoteError, "rank 2"}, kLongMs, {"rank 2"},
               [](ranks::Process&, trestleComm_t) { raise(SIGKILL); });
    }
  }
}

TEST(ApiUserFunction, ARankHearsOfAnAbortWhileItsFunctionRuns) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool waited_for : {true, false}) {
      run_case({transport, waited_for, trestleAborted, "rank 2"}, kLongMs, {"rank 2"},
               [](ranks::Process&, trestleComm_t comm) { EXPECT_TRUE(succeeded(trestleCommAbort(comm))); });
    }
  }
}

// The others' deadline passes. The rank that they ask tells them what it is running.
TEST(ApiUserFunction, ARankAnswersWhileItsFunctionRuns) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const bool waited_for : {true, false}) {
      // The blocked rank must have entered its function by then.
      const int64_t timeout_ms = ranks::patient_ms(kRanks, 1500);
      run_case({transport, waited_for, trestleTimeout, "rank 1"}, timeout_ms,
               {"rank 1 (", "inside its user-defined reduction function"}, nullptr);
    }
  }
}

}  // namespace
}  // namespace user_function_test
}  // namespace api
