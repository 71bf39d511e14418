// A rank sometimes loses its processor for milliseconds. That must not slow down the calls between these stalls. There
// are 2 ranks, each on its own processor if there are two. One of them is stopped for 3 ms every 20 ms, or blocks
// itself at seeded moments. Results are checked. The medians of the calls are printed, not asserted, because a busy
// machine has stalls of its own.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace {

using ranks::succeeded;

constexpr int kStalls = 40;
constexpr int kStallMs = 3;
constexpr int kPeriodMs = 20;
constexpr int kQuietCalls = 20'000;

enum class Kind { kAllReduce, kAllToAll };
enum class Stall { kStopped, kBlocks };

struct Case {
  const char* name;
  Kind kind;
  size_t count;  // of int32
  Stall stall;
  int burst = 1;  // calls between two waits
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

// Words of the job's board.
constexpr int kStalledPhase = 0;  // 1: rank 0 has begun the phase with stalls
constexpr int kStallsDone = 1;

void pass_ms(int ms) {
  ::poll(nullptr, 0, ms);
}

void use_own_processor(int rank) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  std::vector<int> processors;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &usable)) processors.push_back(c);
  }
  if (processors.size() < 2) return;
  CPU_ZERO(&usable);
  CPU_SET(processors[static_cast<size_t>(rank) % processors.size()], &usable);
  sched_setaffinity(0, sizeof usable, &usable);
}

double median_us(std::vector<double>& times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

class Rank {
 public:
  Rank(const Case& c, ranks::Process& process, trestleComm_t comm)
      : case_(c), process_(process), comm_(comm), send_(c.count * 2), recv_(c.count * 2) {}

  // Runs bursts of calls until rank 0 ends the phase, which the sum tells all ranks. Returns the time of a call in each
  // burst, in us.
  std::vector<double> phase(bool stalls) {
    std::vector<double> times;
    ranks::Random random{static_cast<uint64_t>(process_.rank) + 7};
    for (int i = 0;; ++i) {
      const bool last = process_.rank == 0 && ended(stalls, i);
      if (stalls && case_.stall == Stall::kBlocks && process_.rank == 1) block_now_and_then(random);
      const auto before = std::chrono::steady_clock::now();
      const int32_t sum = burst(last ? 1'000'000 : i % 1000);
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
      times.push_back(took.count() / case_.burst);
      if (testing::Test::HasFailure() || sum >= 1'000'000) return times;
      EXPECT_EQ(sum, i % 1000 * (case_.kind == Kind::kAllReduce ? 2 : 1));
    }
  }

 private:
  bool ended(bool stalls, int calls) const {
    return stalls ? process_.board.word[kStallsDone].load() >= kStalls : calls >= kQuietCalls / case_.burst;
  }

  // There are about 20 ms of calls between two blocks.
  void block_now_and_then(ranks::Random& random) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_block_) return;
    pass_ms(kStallMs);
    process_.board.word[kStallsDone].fetch_add(1);
    next_block_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(10 + random.below(15));
  }

  // Returns the result's first element: a value of rank 0 in an all-to-all, the sum of both ranks' in an all-reduce.
  int32_t burst(int32_t value) {
    std::fill(send_.begin(), send_.end(), value);
    for (int i = 0; i < case_.burst; ++i) EXPECT_TRUE(succeeded(call(), comm_));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm_), comm_));
    EXPECT_EQ(recv_[case_.count - 1], recv_[0]);
    return recv_[0];
  }

  trestleResult_t call() {
    if (case_.kind == Kind::kAllToAll)
      return trestleAllToAll(send_.data(), recv_.data(), case_.count, trestleInt32, comm_, nullptr);
    return trestleAllReduce(send_.data(), recv_.data(), case_.count, trestleInt32, trestleSum, comm_, nullptr);
  }

  const Case case_;
  ranks::Process& process_;
  trestleComm_t comm_;
  std::vector<int32_t> send_, recv_;
  std::chrono::steady_clock::time_point next_block_{};
};

class Stalls : public testing::TestWithParam<Case> {};

TEST_P(Stalls, LeaveTheCallsBetweenThemAsTheyWere) {
  const Case c = GetParam();
  ranks::Job job{.ranks = 2};
  job.body = [&](ranks::Process& process) {
    use_own_processor(process.rank);
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
    Rank rank(c, process, comm);
    std::vector<double> quiet = rank.phase(false);
    process.board.word[kStalledPhase] = 1;
    std::vector<double> stalled = rank.phase(true);
    if (process.rank == 0) {
      const double before = median_us(quiet), after = median_us(stalled);
      char line[200];
      std::snprintf(line, sizeof line,
                    "%-24s median of %zu waits %.2f us per call; of %zu with stalls %.2f us: %.2f times", c.name,
                    quiet.size(), before, stalled.size(), after, after / before);
      process.result = line;
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  job.during = [&](ranks::Board& board, const std::vector<pid_t>& pids) {
    if (c.stall != Stall::kStopped) return;
    // A rank that has failed never comes here. Then the watchdog of its case ends the wait.
    for (int waited = 0; board.word[kStalledPhase].load() == 0 && waited < 60'000; ++waited) pass_ms(1);
    for (int i = 0; i < kStalls; ++i) {
      kill(pids[1], SIGSTOP);
      pass_ms(kStallMs);
      kill(pids[1], SIGCONT);
      pass_ms(kPeriodMs - kStallMs);
      board.word[kStallsDone].fetch_add(1);
    }
  };
  const std::vector<ranks::Outcome> outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  std::printf("%s\n", outcomes[0].result.c_str());
}

INSTANTIATE_TEST_SUITE_P(Cases, Stalls,
                         testing::Values(Case{"all_reduce_8_stopped", Kind::kAllReduce, 2, Stall::kStopped},
                                         Case{"all_reduce_32K_stopped", Kind::kAllReduce, 8192, Stall::kStopped},
                                         Case{"all_reduce_8_stopped_bursts", Kind::kAllReduce, 2, Stall::kStopped, 100},
                                         Case{"all_to_all_8_stopped", Kind::kAllToAll, 2, Stall::kStopped},
                                         Case{"all_reduce_8_blocks", Kind::kAllReduce, 2, Stall::kBlocks},
                                         Case{"all_to_all_4K_blocks", Kind::kAllToAll, 1024, Stall::kBlocks}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace api
