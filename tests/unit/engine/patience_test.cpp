// How waiters spend the time, in virtual time. Two ranks exchange small data, and one of them sometimes loses its
// processor for 3 ms. The exchanges between two stalls must be as fast as without stalls.
#include "engine/run/patience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace trestle {
namespace patience_test {
namespace {

constexpr int64_t kLookNs = 50;
constexpr int64_t kYieldNs = 400;
constexpr int64_t kExchangeNs = 300;
constexpr int64_t kWakeNs = 30'000;  // from the bell to the first look
constexpr int64_t kStallNs = 3'000'000;
constexpr int64_t kPeriodNs = 20'000'000;

// Waits in virtual time from `now` until a look finds the data, which arrives at `arrival`. The bell wakes a sleeper.
int64_t wait(Patience& patience, int64_t now, int64_t arrival, int64_t yield_ns, int& sleeps) {
  Pause pause(patience);
  while (now < arrival) {
    switch (pause.next()) {
      case Pause::Pass::kLook:
        now += kLookNs;
        break;
      case Pause::Pass::kYield:
        now += yield_ns;
        pause.yielded(yield_ns);
        break;
      case Pause::Pass::kSleep:
        ++sleeps;
        now = arrival + kWakeNs;
    }
  }
  pause.moved();
  return now;
}

struct Outcome {
  int64_t median_ns = 0;
  int sleeps = 0;
  int stalls = 0;
};

// Each exchange ends when both ranks have published. Each rank publishes when it has seen the end of the previous
// exchange.
Outcome exchange(int exchanges, bool stalls, uint64_t seed) {
  Patience mine{PatienceLimits()}, theirs{PatienceLimits()};
  Rng rng(seed);
  Outcome outcome;
  int64_t my_time = 0, their_time = 0, next_stall = kPeriodNs;
  std::vector<int64_t> times;
  for (int i = 0; i < exchanges; ++i) {
    const int64_t before = my_time;
    const int64_t my_part = my_time + kExchangeNs;
    int64_t their_part = their_time + kExchangeNs;
    if (stalls && their_part >= next_stall) {
      their_part += kStallNs;
      next_stall = their_part + kPeriodNs / 2 + static_cast<int64_t>(rng.next() % kPeriodNs);
      ++outcome.stalls;
    }
    my_time = wait(mine, my_part, their_part, kYieldNs, outcome.sleeps);
    their_time = wait(theirs, their_part, my_part, kYieldNs, outcome.sleeps);
    times.push_back(my_time - before);
  }
  std::nth_element(times.begin(), times.begin() + exchanges / 2, times.end());
  outcome.median_ns = times[static_cast<size_t>(exchanges) / 2];
  return outcome;
}

TEST(Patience, StallsLeaveTheExchangesBetweenThemAsTheyWere) {
  const Outcome quiet = exchange(500'000, false, 1);
  EXPECT_EQ(quiet.sleeps, 0);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome stalled = exchange(500'000, true, seed);
    EXPECT_GT(stalled.stalls, 5) << seed;
    EXPECT_EQ(stalled.median_ns, quiet.median_ns) << seed;
    // A rank that waits for a stalled one sleeps. The stalled one itself must find all data there.
    EXPECT_LE(stalled.sleeps, 2 * stalled.stalls) << seed;
  }
}

TEST(Patience, LooksLessWhereWaitsEndInSleepAndAsBeforeWhenTheyNoLongerDo) {
  Patience patience{PatienceLimits()};
  int sleeps = 0;
  for (int i = 0; i < 100; ++i) wait(patience, 0, 10'000'000, kYieldNs, sleeps);
  EXPECT_EQ(sleeps, 100);
  EXPECT_LE(patience.looks(), PatienceLimits().looks / 20);
  EXPECT_GT(patience.looks(), 0);
  for (int i = 0; i < 100; ++i) wait(patience, 0, kExchangeNs, kYieldNs, sleeps);
  EXPECT_EQ(sleeps, 100);
  EXPECT_GT(patience.looks(), PatienceLimits().looks * 9 / 10);
}

TEST(Patience, LooksLongerWhereThatSparesASleep) {
  Patience patience{PatienceLimits()};
  int sleeps = 0;
  const int64_t just_in_time = PatienceLimits().looks * kLookNs * 9 / 10;
  for (int i = 0; i < 10; ++i) wait(patience, 0, just_in_time, kYieldNs, sleeps);
  EXPECT_GT(patience.looks(), PatienceLimits().looks);
  EXPECT_EQ(sleeps, 0);
}

// Another program gets the processor for a time slice whenever it is yielded.
TEST(Patience, SleepsInsteadOfYieldingToAStranger) {
  constexpr int64_t kSliceNs = 3'000'000;
  constexpr int64_t kArrivalNs = 40'000;
  Patience patience{PatienceLimits()};
  int sleeps = 0, late = 0;
  for (int i = 0; i < 1000; ++i) late += wait(patience, 0, kArrivalNs, kSliceNs, sleeps) > kSliceNs ? 1 : 0;
  EXPECT_LE(late, 1000 / 64 + 1);
}

// If ranks outnumber processors, the next thread is probably the awaited one, however long it works.
TEST(Patience, YieldsToPeersHoweverLongTheyWork) {
  Patience crowded{PatienceLimits{.looks = 20, .yields = 30, .learns = false}};
  int sleeps = 0;
  for (int i = 0; i < 1000; ++i) wait(crowded, 0, 2'000'000, 200'000, sleeps);
  EXPECT_EQ(sleeps, 0);
}

// TRESTLE_SPIN overrides everything that was learned.
TEST(Patience, LearnsNothingWhereTheUserHasSpoken) {
  Patience never{PatienceLimits{.looks = 0, .yields = 0, .learns = false}};
  Pause first(never);
  EXPECT_EQ(first.next(), Pause::Pass::kSleep);
  Patience fixed{PatienceLimits{.looks = 1000, .yields = 8, .learns = false}};
  int sleeps = 0;
  for (int i = 0; i < 100; ++i) wait(fixed, 0, 10'000'000, 4'000'000, sleeps);
  EXPECT_EQ(fixed.looks(), 1000);
  EXPECT_EQ(sleeps, 0) << "31 long yields are longer than the wait";
}

}  // namespace
}  // namespace patience_test
}  // namespace trestle
