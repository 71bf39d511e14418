// A rank stops (SIGSTOP) or dies (SIGKILL) in every state of a communicator's life. All others fail, and every sentence
// begins with that rank, by the caller's numbering. Nothing is left behind. tests/torture has random moments.
//
// In calls that consist of messages the victim ends at its n-th message.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <thread>

#include "local/api/ending.h"
#include "support/ranks.h"

namespace api {
namespace blame_test {
namespace {

using ranks::contains;
using ranks::succeeded;

constexpr int kRanks = 4;
constexpr size_t kSmall = 2;
constexpr size_t kLarge = size_t{1} << 20;  // 4 MiB of float32

enum class State {
  kNeverCame,
  kJoining,             // at its n-th message
  kBeforeFirstMessage,  // n elements
  kFirstBroadcast,      // n elements; its root only sends
  kIdle,
  kSmallAllReduce,
  kLargeAllReduce,
  kChain,
  kSplit,     // at its n-th message; 0: instead of making the call
  kFinalize,  // at its n-th message; 0: instead of making the call
};

struct Case {
  State state;
  const char* name;
  int n = 0;
  int victim = 1;
  int signal = SIGSTOP;
  const char* transport = "shm";
};

std::ostream& operator<<(std::ostream& out, const Case& at) {
  return out << at.name << " " << at.n << ", rank " << at.victim << (at.signal == SIGSTOP ? " stands still" : " dies")
             << ", " << at.transport;
}

const Case kCases[] = {
    {State::kNeverCame, "NeverCame"},
    {State::kJoining, "Joining", 1},
    {State::kJoining, "Joining", 3},
    {State::kJoining, "Joining", 5},
    {State::kJoining, "Joining", 8},
    {State::kJoining, "Joining", 12},
    {State::kBeforeFirstMessage, "BeforeFirstMessage", static_cast<int>(kSmall)},
    {State::kBeforeFirstMessage, "BeforeFirstMessage", 5000},
    {State::kBeforeFirstMessage, "BeforeFirstMessage", static_cast<int>(kLarge)},
    {State::kBeforeFirstMessage, "BeforeFirstMessage", 5000, 0},
    {State::kFirstBroadcast, "FirstBroadcast", static_cast<int>(kLarge)},
    {State::kFirstBroadcast, "FirstBroadcast", static_cast<int>(kLarge), 2},
    {State::kIdle, "Idle"},
    {State::kSmallAllReduce, "SmallAllReduce"},
    {State::kLargeAllReduce, "LargeAllReduce"},
    {State::kChain, "Chain"},
    {State::kSplit, "Split", 0},
    {State::kSplit, "Split", 1},
    {State::kSplit, "Split", 2},
    {State::kSplit, "Split", 3},
    {State::kSplit, "Split", 4, 0},
    {State::kSplit, "Split", 5, 3},
    {State::kSplit, "Split", 6},
    {State::kSplit, "Split", 8, 3},
    {State::kSplit, "Split", 10},
    {State::kSplit, "Split", 13, 2},
    {State::kFinalize, "Finalize", 0},
    {State::kFinalize, "Finalize", 1},
    {State::kFinalize, "Finalize", 2, 3},
};

// Whether messages of a transport are under way. The others are of the rendezvous and the control mesh.
bool has_data(State state) {
  return state != State::kNeverCame && state != State::kJoining && state != State::kSplit && state != State::kFinalize;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (Case at : kCases) {
    for (const int signal : {SIGSTOP, SIGKILL}) {
      for (const char* transport : {"shm", "tcp"}) {
        at.signal = signal;
        at.transport = transport;
        if (has_data(at.state) || (at.n % 2 == 0) == (at.transport == std::string("shm"))) all.push_back(at);
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& at = info.param;
  return std::string(at.name) + std::to_string(at.n) + "Rank" + std::to_string(at.victim) +
         (at.signal == SIGSTOP ? "Stops" : "Dies") + (std::string(at.transport) == "shm" ? "Shm" : "Tcp");
}

trestleResult_t all_reduce(trestleComm_t comm, size_t count) {
  std::vector<float> x(count, 1.0f);
  const trestleResult_t result = trestleAllReduce(x.data(), x.data(), count, trestleFloat32, trestleMax, comm, nullptr);
  return result == trestleSuccess ? trestleCommSynchronize(comm) : result;
}

trestleResult_t broadcast(trestleComm_t comm, size_t count) {
  std::vector<float> x(count, 1.0f);
  const trestleResult_t result = trestleBroadcast(x.data(), x.data(), count, trestleFloat32, 0, comm, nullptr);
  return result == trestleSuccess ? trestleCommSynchronize(comm) : result;
}

// Passes a message from rank 0 to the last rank and back to rank 0.
trestleResult_t pass_around(trestleComm_t comm, int rank) {
  std::vector<float> x(kLarge / 16, 1.0f);
  const int next = (rank + 1) % kRanks;
  const int before = (rank + kRanks - 1) % kRanks;
  const auto send = [&] { return trestleSend(x.data(), x.size(), trestleFloat32, next, comm, nullptr); };
  const auto receive = [&] { return trestleRecv(x.data(), x.size(), trestleFloat32, before, comm, nullptr); };
  trestleResult_t result = rank == 0 ? send() : receive();
  if (result == trestleSuccess) result = rank == 0 ? receive() : send();
  return result == trestleSuccess ? trestleCommSynchronize(comm) : result;
}

// Reverses the order, so that every rank gets another number.
trestleResult_t split(trestleComm_t comm, int rank) {
  trestleComm_t made = nullptr;
  const trestleResult_t result = trestleCommSplit(comm, 0, -rank, &made, nullptr);
  if (made != nullptr) trestleCommAbort(made);
  return result;
}

trestleResult_t one_call(const Case& at, trestleComm_t comm, int rank) {
  switch (at.state) {
    case State::kBeforeFirstMessage:
      return all_reduce(comm, static_cast<size_t>(at.n));
    case State::kFirstBroadcast:
      return broadcast(comm, static_cast<size_t>(at.n));
    case State::kLargeAllReduce:
      return all_reduce(comm, kLarge);
    case State::kChain:
      return pass_around(comm, rank);
    case State::kSplit:
      return split(comm, rank);
    case State::kFinalize:
      return trestleCommFinalize(comm);
    default:
      return all_reduce(comm, kSmall);
  }
}

bool at_a_message(const Case& at) {
  return at.n > 0 && (at.state == State::kJoining || at.state == State::kSplit || at.state == State::kFinalize);
}

bool in_the_midst(const Case& at) {
  return at.state == State::kSmallAllReduce || at.state == State::kLargeAllReduce || at.state == State::kChain;
}

bool is_first(const Case& at) {
  return at.state == State::kBeforeFirstMessage || at.state == State::kFirstBroadcast;
}

// Runs on all ranks before the victim ends, so that links exist and the failing call is not the first one.
void warm_up(const Case& at, trestleComm_t comm, int rank) {
  if (at.state == State::kJoining || is_first(at)) return;
  ASSERT_TRUE(succeeded(all_reduce(comm, kSmall), comm));
  ASSERT_TRUE(succeeded(all_reduce(comm, kLarge), comm));
  if (at.state == State::kChain) {
    ASSERT_TRUE(succeeded(pass_around(comm, rank), comm));
  }
}

[[noreturn]] void victim(const Case& at, const ranks::Settings& settings, ranks::Process& process) {
  const auto end_now = [&] { ending::end_now(at.signal); };
  if (at.state == State::kNeverCame) end_now();
  if (at.state == State::kJoining) ending::end_at_message(at.n, at.signal);
  trestleComm_t comm = nullptr;
  if (ranks::join(process, settings, &comm) != trestleSuccess) end_now();
  warm_up(at, comm, process.rank);
  ranks::meet(process.board, kRanks);
  if (at_a_message(at)) {
    ending::end_at_message(at.n, at.signal);
    one_call(at, comm, process.rank);
  } else if (in_the_midst(at)) {
    std::atomic<int> calls{0};
    std::thread killer([&] {
      ranks::wait_until([&] { return calls.load() >= 3; });
      end_now();
    });
    while (one_call(at, comm, process.rank) == trestleSuccess) ++calls;
    killer.join();
  }
  ending::end_now(at.signal);
}

// Makes calls until this rank is told of a failure.
trestleResult_t call_until_failure(const Case& at, trestleComm_t comm, int rank) {
  trestleResult_t result = trestleSuccess;
  if (at.state == State::kFinalize) return one_call(at, comm, rank);
  if (at.state == State::kIdle && at.signal == SIGKILL) {
    while (result == trestleSuccess && trestleCommGetAsyncError(comm, &result) == trestleSuccess) sched_yield();
    return result;
  }
  if (at.state == State::kSplit) result = one_call(at, comm, rank);
  const bool repeats = in_the_midst(at) || is_first(at);
  while (result == trestleSuccess) result = repeats ? one_call(at, comm, rank) : all_reduce(comm, kSmall);
  return result;
}

// Every call tells of the failure from now on, with the sentence that names the victim's host.
void expect_it_stays(trestleComm_t comm, trestleResult_t result, const std::string& sentence) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  EXPECT_TRUE(contains(sentence, host)) << sentence;
  EXPECT_EQ(all_reduce(comm, 1), result) << "sticky";
  EXPECT_EQ(trestleGetLastError(comm), sentence) << "sticky";
  trestleResult_t state = trestleSuccess;
  EXPECT_EQ(trestleCommGetAsyncError(comm, &state), trestleSuccess);
  EXPECT_EQ(state, result);
}

// Returns the sentence; "" if this rank has not failed.
std::string survive(const Case& at, const ranks::Settings& settings, ranks::Process& process) {
  trestleComm_t comm = nullptr;
  trestleResult_t result = ranks::join(process, settings, &comm);
  if (result == trestleSuccess) {
    warm_up(at, comm, process.rank);
    if (at.state != State::kJoining) ranks::meet(process.board, kRanks);
    result = call_until_failure(at, comm, process.rank);
  }
  const std::string sentence = result == trestleSuccess ? "" : trestleGetLastError(comm);
  EXPECT_TRUE(result == trestleSuccess || result == (at.signal == SIGKILL ? trestleRemoteError : trestleTimeout) ||
              at.state == State::kNeverCame || at.state == State::kJoining)
      << result << ": " << sentence;
  if (result != trestleSuccess && has_data(at.state)) expect_it_stays(comm, result, sentence);
  ranks::meet(process.board, kRanks - 1);  // no rank may hear of an end before it has failed itself
  if (comm != nullptr) trestleCommAbort(comm);
  return sentence;
}

// Trestle's own: other programs of the machine come and go, such as the ranks of Open MPI in another test.
std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (contains(name, "trestle")) names.insert(name);
  }
  return names;
}

class ApiBlame : public testing::TestWithParam<Case> {};

TEST_P(ApiBlame, AllNameTheRankAndNoOther) {
  const Case at = GetParam();
  SCOPED_TRACE(at);
  // All calls until the victim ends must succeed by the same deadline.
  const ranks::Settings settings = ranks::patient({.ranks = kRanks, .transport = at.transport, .timeout_ms = 1500});
  ranks::Job job;
  job.ranks = kRanks;
  if (at.signal == SIGSTOP) job.stopped = {at.victim};
  job.body = [&](ranks::Process& process) {
    process.board.word[process.rank].store(getpid());
    if (process.rank == at.victim) victim(at, settings, process);
    process.result = survive(at, settings, process);
    const std::string pid = ", pid " + std::to_string(process.board.word[at.victim].load()) + ")";
    const bool known = at.state != State::kNeverCame && at.state != State::kJoining;
    if (known && !process.result.empty()) {
      EXPECT_TRUE(contains(process.result.substr(0, 100), pid)) << process.result;
    }
  };
  const auto files = shared_memory_files();
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, {at.victim});
  EXPECT_EQ(shared_memory_files(), files) << "left in /dev/shm";
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  const std::string culprit = "rank " + std::to_string(at.victim) + " ";
  int told = 0;
  for (int r = 0; r < kRanks; ++r) {
    const std::string& sentence = outcomes[static_cast<size_t>(r)].result;
    if (r == at.victim || sentence.empty()) continue;
    ++told;
    EXPECT_TRUE(sentence.starts_with(culprit)) << "rank " << r << ": " << sentence;
    std::cout << "rank " << r << ": " << sentence << "\n";
  }
  if (at.state != State::kFinalize || at.n == 0) {
    EXPECT_EQ(told, kRanks - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(States, ApiBlame, testing::ValuesIn(all_cases()), name_of);

// All ranks but the victim are inside the operation. Whichever rank notices the death first, each one reports what it
// waited for itself.
void expect_survivors_say_what_they_awaited(const ranks::Settings& settings) {
  ranks::Job job;
  job.ranks = settings.ranks;
  const int victim = settings.ranks / 2;
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
    if (process.rank == victim) {
      ranks::wait_until([&] { return process.board.word[0].load() == process.ranks - 1; });
      ending::end_now(SIGKILL);
    }
    std::vector<float> data(kLarge, 1.0f);
    ASSERT_TRUE(
        succeeded(trestleAllReduce(data.data(), data.data(), kLarge, trestleFloat32, trestleSum, comm, nullptr), comm));
    process.board.word[0].fetch_add(1);
    EXPECT_EQ(trestleCommSynchronize(comm), trestleRemoteError);
    const std::string sentence = trestleGetLastError(comm);
    for (const std::string& fact :
         {"rank " + std::to_string(victim), std::string("operation 0 (allreduce"), std::string("awaiting")}) {
      EXPECT_TRUE(contains(sentence, fact)) << fact << " is not in: " << sentence;
    }
    trestleCommAbort(comm);
  };
  ranks::expect_ended_well(ranks::run(job), {victim});
}

TEST(ApiBlameInside, EverySurvivorSaysWhatItAwaited) {
  expect_survivors_say_what_they_awaited({.ranks = 4, .transport = "shm"});
  expect_survivors_say_what_they_awaited({.ranks = 4, .transport = "tcp"});
  expect_survivors_say_what_they_awaited({.ranks = 8, .dims = "4x2", .transport = "shm,tcp"});
}

}  // namespace
}  // namespace blame_test
}  // namespace api
