// The executor's bell: no ring is lost, whether the ringing or the waiting thread is first.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gradient/executor/bell.h"

namespace trestle {
namespace {

TEST(Bell, LosesNoRing) {
  constexpr int kRounds = 20'000;
  Bell there, back;
  std::atomic<int> sent{0}, answered{0};
  const auto until = [](Bell& bell, const std::atomic<int>& value, int wanted) {
    for (;;) {
      const uint32_t before = bell.count();
      if (value.load() >= wanted) return;
      bell.wait(before);
    }
  };
  std::thread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      until(there, sent, round);
      answered.store(round);
      back.ring();
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    sent.store(round);
    there.ring();
    until(back, answered, round);
  }
  other.join();
  EXPECT_EQ(answered.load(), kRounds);
}

TEST(Bell, WakesAllThatWait) {
  constexpr int kThreads = 4, kRounds = 500;
  Bell bell;
  std::atomic<int> round{0}, seen{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int mine = 1; mine <= kRounds; ++mine) {
        for (;;) {
          const uint32_t before = bell.count();
          if (round.load() >= mine) break;
          bell.wait(before);
        }
        seen.fetch_add(1);
      }
    });
  }
  for (int now = 1; now <= kRounds; ++now) {
    round.store(now);
    bell.ring();
    while (seen.load() < now * kThreads) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
}

// Only rings may be waited for while it dozes, and nudges come at any time before.
TEST(Bell, ADozerLosesNoRing) {
  constexpr int kRounds = 20'000;
  Bell bell, back;
  std::atomic<int> rung{0}, seen{0};
  std::thread dozer([&] {
    for (int round = 1; round <= kRounds; ++round) {
      for (;;) {
        const uint32_t before = bell.count();
        if (rung.load() >= round) break;
        bell.doze(before);
      }
      seen.store(round);
      back.ring();
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = round % 3; i > 0; --i) bell.nudge();
    rung.store(round);
    bell.ring();
    for (;;) {
      const uint32_t before = back.count();
      if (seen.load() >= round) break;
      back.wait(before);
    }
  }
  dozer.join();
  EXPECT_EQ(seen.load(), kRounds);
}

TEST(Bell, ANudgeWakesASleeper) {
  Bell bell;
  std::atomic<bool> sent{false};
  std::thread sleeper([&] {
    for (;;) {
      const uint32_t before = bell.count();
      if (sent.load()) return;
      bell.wait(before);
    }
  });
  sent.store(true);
  bell.nudge();
  sleeper.join();
}

TEST(Bell, ADozeAfterANudgeReturns) {
  Bell bell;
  const uint32_t before = bell.count();
  bell.nudge();
  bell.doze(before);
  EXPECT_EQ(bell.count(), before + 1);
}

TEST(Bell, AWaitForAnEarlierCountReturns) {
  Bell bell;
  const uint32_t before = bell.count();
  bell.ring();
  bell.wait(before);
  EXPECT_EQ(bell.count(), before + 1);
}

}  // namespace
}  // namespace trestle
