// A rank's process is killed at one of 15 points. All others get an error that names it, independently of the
// operations' deadline, and nothing is left behind. The time is not measured: a survivor that waits for the deadline is
// ended by the watchdog, which comes first.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include "support/ranks.h"

namespace api {
namespace kill_test {
namespace {

using ranks::contains;
using ranks::succeeded;

constexpr int kPoints = 15;
constexpr int64_t kDeadlineMs = 300'000;
constexpr int kWatchdogS = 120;
constexpr size_t kCount = size_t{4} << 20;  // 16 MiB of float32

enum class Moment { kJoining, kBetweenCalls, kInsideCalls };

struct Point {
  int number;
  ranks::Settings settings;
  Moment moment;
  int victim;
  int calls;          // before the victim dies
  uint64_t spinning;  // rounds of a busy loop after that, inside the next one
};

Moment moment_of(int number) {
  return number % 5 == 0 ? Moment::kJoining : number % 5 == 1 ? Moment::kBetweenCalls : Moment::kInsideCalls;
}

Point point(int number, Moment moment) {
  ranks::Random random{static_cast<uint64_t>(number) + 77};
  ranks::Settings settings{.ranks = 4, .timeout_ms = kDeadlineMs};
  if (number % 3 == 0) settings.transport = "shm";
  if (number % 3 == 1) settings.transport = "tcp";
  if (number % 3 == 2) settings = {.ranks = 8, .dims = "4x2", .transport = "shm,tcp", .timeout_ms = kDeadlineMs};
  // If a rank dies before another one has met it, only the deadline shows that it is missing. All others must come by
  // then.
  if (moment == Moment::kJoining) settings.timeout_ms = ranks::patient_ms(settings.ranks, 5'000);
  const auto victim = static_cast<int>(random.below(static_cast<uint64_t>(settings.ranks)));
  const auto calls = static_cast<int>(random.below(4));
  // The first steps of making a communicator are fast, but a loaded machine takes many times as long.
  const uint64_t longest = moment == Moment::kJoining ? uint64_t{1} << (14 + random.below(11)) : 8'000'000;
  return {number, settings, moment, victim, calls, random.below(longest)};
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// All-reduces until one fails. Returns the failure's code and sentence.
trestleResult_t call_until_failure(trestleComm_t comm, int most, std::atomic<int>& started) {
  std::vector<float> data(kCount, 1.0f);
  trestleResult_t result = trestleSuccess;
  for (int i = 0; i < most && result == trestleSuccess; ++i) {
    result = trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, trestleMax, comm, nullptr);
    started.fetch_add(1);
    if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  }
  return result;
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

[[noreturn]] void victim(const Point& at, ranks::Process& process) {
  std::atomic<int> started{0};
  std::thread killer;
  if (at.moment != Moment::kBetweenCalls) {
    const int after = at.moment == Moment::kJoining ? 0 : at.calls + 1;
    if (at.moment == Moment::kJoining && process.rank != 0) {
      ranks::wait_until([&] { return process.board.id_written.load() != 0; });
    }
    killer = std::thread([&, after] {
      ranks::wait_until([&] { return started.load() >= after; });
      if (at.moment == Moment::kJoining) ranks::wait_until([&] { return process.board.id_written.load() != 0; });
      ranks::spin(at.spinning);
      die();
    });
  }
  trestleComm_t comm = nullptr;
  const trestleResult_t joined = ranks::join(process, at.settings, &comm);
  if (joined == trestleSuccess) call_until_failure(comm, at.moment == Moment::kBetweenCalls ? at.calls : 1000, started);
  if (killer.joinable()) killer.join();
  die();
}

void survivor(const Point& at, ranks::Process& process) {
  trestleComm_t comm = nullptr;
  const std::string who = "rank " + std::to_string(at.victim);
  trestleResult_t result = ranks::join(process, at.settings, &comm);
  if (result != trestleSuccess) {
    ASSERT_EQ(at.moment, Moment::kJoining) << trestleGetLastError(nullptr);
    const std::string sentence = trestleGetLastError(nullptr);
    EXPECT_TRUE(result == trestleRemoteError || result == trestleTimeout) << sentence;
    // All ranks meet at rank 0. A rank that has not met it yet knows only its address.
    const std::string number = "\\b" + std::to_string(at.victim) + "\\b";
    EXPECT_TRUE(std::regex_search(sentence, std::regex(number)) || (at.victim == 0 && contains(sentence, "rendezvous")))
        << sentence;
    return;
  }
  std::atomic<int> started{0};
  result = call_until_failure(comm, 1000, started);
  const std::string sentence = trestleGetLastError(comm);
  EXPECT_EQ(result, trestleRemoteError) << sentence;
  EXPECT_TRUE(contains(sentence, who)) << sentence;
  EXPECT_TRUE(contains(sentence, host_name())) << sentence;
  float x = 0;
  EXPECT_EQ(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), result) << "sticky";
  EXPECT_EQ(trestleGetLastError(comm), sentence) << "sticky";
  trestleResult_t state = trestleSuccess;
  EXPECT_EQ(trestleCommGetAsyncError(comm, &state), trestleSuccess);
  EXPECT_EQ(state, result);
  EXPECT_TRUE(succeeded(process.rank % 2 == 0 ? trestleCommDestroy(comm) : trestleCommAbort(comm)));
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

void expect_others_learn_who_died(const Point& at) {
  SCOPED_TRACE(testing::Message() << at.settings << ", victim " << at.victim << ", moment "
                                  << static_cast<int>(at.moment) << ", calls " << at.calls);
  const auto before = shared_memory_files();
  ranks::Job job;
  job.ranks = at.settings.ranks;
  job.watchdog_s = kWatchdogS;
  job.body = [&](ranks::Process& process) {
    if (process.rank == at.victim) victim(at, process);
    survivor(at, process);
    // The process that made the id stays until all ranks that met there have an answer.
    if (at.moment == Moment::kJoining) ranks::meet(process.board, at.settings.ranks - 1);
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, {at.victim});
  EXPECT_EQ(outcomes[static_cast<size_t>(at.victim)].signal, SIGKILL);
  EXPECT_FALSE(outcomes[static_cast<size_t>(at.victim)].hung);
  EXPECT_EQ(shared_memory_files(), before) << "left in /dev/shm";
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class ApiKill : public testing::TestWithParam<int> {};

TEST_P(ApiKill, OthersLearnWhoDied) {
  expect_others_learn_who_died(point(GetParam(), moment_of(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Points, ApiKill, testing::Range(0, kPoints));

// All ranks but the victim are inside the operation. Whichever rank notices the death first, each one reports what it
// waited for itself.
void expect_survivors_say_what_they_awaited(const ranks::Settings& settings) {
  ranks::Job job;
  job.ranks = settings.ranks;
  job.watchdog_s = kWatchdogS;
  const int victim = settings.ranks / 2;
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, settings, &comm)));
    if (process.rank == victim) {
      ranks::wait_until([&] { return process.board.word[0].load() == process.ranks - 1; });
      die();
    }
    std::vector<float> data(kCount, 1.0f);
    ASSERT_TRUE(
        succeeded(trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, trestleSum, comm, nullptr), comm));
    process.board.word[0].fetch_add(1);
    EXPECT_EQ(trestleCommSynchronize(comm), trestleRemoteError);
    const std::string sentence = trestleGetLastError(comm);
    for (const std::string& fact : {"rank " + std::to_string(victim), host_name(),
                                    std::string("operation 0 (allreduce"), std::string("awaiting")}) {
      EXPECT_TRUE(contains(sentence, fact)) << fact << " is not in: " << sentence;
    }
    trestleCommAbort(comm);
  };
  ranks::expect_ended_well(ranks::run(job), {victim});
}

TEST(ApiKillInside, EverySurvivorSaysWhatItAwaited) {
  expect_survivors_say_what_they_awaited({.ranks = 4, .transport = "shm", .timeout_ms = kDeadlineMs});
  expect_survivors_say_what_they_awaited({.ranks = 4, .transport = "tcp", .timeout_ms = kDeadlineMs});
  expect_survivors_say_what_they_awaited(
      {.ranks = 8, .dims = "4x2", .transport = "shm,tcp", .timeout_ms = kDeadlineMs});
}

class ApiKillJoining : public testing::TestWithParam<int> {};

TEST_P(ApiKillJoining, OthersLearnWhoDied) {
  expect_others_learn_who_died(point(GetParam(), Moment::kJoining));
}

INSTANTIATE_TEST_SUITE_P(Points, ApiKillJoining, testing::Range(1000, 1006));
// For --gtest_also_run_disabled_tests, while other programs keep the machine busy.
INSTANTIATE_TEST_SUITE_P(DISABLED_ManyPoints, ApiKillJoining, testing::Range(2000, 2300));

}  // namespace
}  // namespace kill_test
}  // namespace api
