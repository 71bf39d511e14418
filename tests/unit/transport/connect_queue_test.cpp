// Which of many outgoing connections may be made at a time.
#include "transport/tcp/connect_queue.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace trestle {
namespace {

constexpr int32_t kMost = ConnectQueue::kMostAtOnce;

// The ranks from 0 that may begin at once.
std::vector<int32_t> begin_all(ConnectQueue& queue, int32_t ranks, int64_t now_ns) {
  std::vector<int32_t> begun;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (queue.begin(rank, now_ns)) begun.push_back(rank);
  }
  return begun;
}

TEST(ConnectQueue, AFewRanksNeverWait) {
  ConnectQueue queue;
  EXPECT_EQ(begin_all(queue, kMost, 5).size(), kMost);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.due_ns(), INT64_MAX);
}

TEST(ConnectQueue, TheNextInLineFollowsAnAttemptThatEnds) {
  ConnectQueue queue;
  EXPECT_EQ(begin_all(queue, kMost + 3, 5).size(), kMost);
  EXPECT_FALSE(queue.next(5));
  queue.end(2);
  EXPECT_EQ(queue.due_ns(), 0);
  EXPECT_EQ(queue.next(5), kMost);
  EXPECT_FALSE(queue.next(5));
  queue.end(kMost);
  EXPECT_FALSE(queue.begin(90, 5)) << "nobody overtakes those in line";
  EXPECT_EQ(queue.next(5), kMost + 1);
}

TEST(ConnectQueue, WhoIsNotNeededAnyMoreLeavesTheLine) {
  ConnectQueue queue;
  begin_all(queue, kMost + 2, 5);
  queue.end(kMost);
  queue.end(0);
  EXPECT_EQ(queue.next(5), kMost + 1);
  EXPECT_TRUE(queue.empty());
  queue.end(1000);
}

// In virtual time: each attempt is answered a while after it has begun, those to the first `frozen` ranks never.
struct Served {
  int64_t last_ns = 0;    // when the last rank that answers was connected
  size_t most_open = 0;   // attempts to ranks that answer, at a time
  size_t most_begun = 0;  // attempts within any 2 s, without the first kMostAtOnce
};

class Job {
 public:
  Job(int32_t ranks, int32_t frozen, int64_t takes_ns) : frozen_(frozen), left_(ranks - frozen), takes_ns_(takes_ns) {
    for (const int32_t rank : begin_all(queue_, ranks, 0)) begun(rank);
  }
  // Until everybody who answers is connected, or nothing is left to wait for.
  Served run() {
    while (left_ > 0) {
      const int64_t answer_ns = open_.empty() ? INT64_MAX : open_.front().second;
      const int64_t next_ns = std::max(now_ns_, std::min(answer_ns, queue_.due_ns()));
      if (next_ns == INT64_MAX) break;
      now_ns_ = next_ns;
      for (; !open_.empty() && open_.front().second <= now_ns_; --left_) {
        queue_.answered(open_.front().first, now_ns_);
        open_.pop_front();
        served_.last_ns = now_ns_;
      }
      while (const auto rank = queue_.next(now_ns_)) begun(*rank);
    }
    return served_;
  }

 private:
  void begun(int32_t rank) {
    times_.push_back(now_ns_);
    const auto since = std::upper_bound(times_.begin() + std::min<std::ptrdiff_t>(kMost, std::ssize(times_)),
                                        times_.end(), now_ns_ - 2'000'000'000);
    served_.most_begun = std::max(served_.most_begun, static_cast<size_t>(times_.end() - since));
    if (rank < frozen_) return;
    open_.emplace_back(rank, now_ns_ + takes_ns_);
    served_.most_open = std::max(served_.most_open, open_.size());
  }

  const int32_t frozen_;
  int32_t left_;  // ranks that are still to answer
  const int64_t takes_ns_;
  ConnectQueue queue_;
  int64_t now_ns_ = 0;
  std::deque<std::pair<int32_t, int64_t>> open_;  // the rank, and when it answers
  std::vector<int64_t> times_;                    // of all beginnings
  Served served_;
};

TEST(ConnectQueue, FrozenPeersDoNotKeepTheOthersWaiting) {
  ConnectQueue queue;
  begin_all(queue, kMost + 1, 5);
  EXPECT_EQ(queue.due_ns(), 5 + ConnectQueue::kQuietNs);
  EXPECT_FALSE(queue.next(4 + ConnectQueue::kQuietNs));
  EXPECT_EQ(queue.next(5 + ConnectQueue::kQuietNs), kMost);
  for (const int32_t frozen : {1, kMost - 1, kMost, 2 * kMost}) {
    const Served served = Job(256, frozen, kMs).run();
    const int64_t quiet_ns = std::max(0, frozen - kMost + 1) * ConnectQueue::kQuietNs;
    EXPECT_LE(served.last_ns, quiet_ns + 100 * kMs) << frozen;
    EXPECT_LE(served.most_open, static_cast<size_t>(kMost)) << frozen;
  }
}

// One place is left, and it serves all others in turn: those that it overtakes free the rest.
TEST(ConnectQueue, AnAttemptThatOthersOvertakeCountsNoLonger) {
  ConnectQueue queue;
  begin_all(queue, 100, 5);
  constexpr auto kOvertakers = static_cast<int32_t>(ConnectQueue::kOvertakenBy);
  for (int32_t rank = kMost - 1; rank < kMost - 2 + kOvertakers; ++rank) {
    queue.answered(rank, 6);
    ASSERT_EQ(queue.next(6), rank + 1);
    ASSERT_FALSE(queue.next(6));
  }
  queue.answered(kMost - 2 + kOvertakers, 6);
  for (int32_t free = 0; free < kMost; ++free) EXPECT_TRUE(queue.next(6)) << free;
  EXPECT_FALSE(queue.next(6));
}

// An attempt that is given up says nothing of the others.
TEST(ConnectQueue, WhatIsGivenUpOvertakesNobody) {
  ConnectQueue queue;
  begin_all(queue, 100, 5);
  for (int32_t rank = kMost - 1; rank < 90; ++rank) {
    queue.end(rank);
    ASSERT_EQ(queue.next(6), rank + 1);
    ASSERT_FALSE(queue.next(6));
  }
}

// On an overloaded machine everybody answers late. More attempts would make it worse.
TEST(ConnectQueue, WhereEverybodyIsSlowFewAttemptsBegin) {
  for (const int64_t takes_ms : {100, 240}) {
    const Served served = Job(256, 0, takes_ms * kMs).run();
    EXPECT_EQ(served.most_open, static_cast<size_t>(kMost)) << takes_ms;
  }
  EXPECT_LE(Job(256, 0, 1000 * kMs).run().most_open, static_cast<size_t>(kMost) + 4);
  EXPECT_LE(Job(256, 0, 60'000 * kMs).run().most_begun, static_cast<size_t>(kMost));
}

// Attempts end, fail and are begun again in any order: never more than the limit count, and everybody has a turn.
TEST(ConnectQueue, EverybodyHasATurn) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    ConnectQueue queue;
    int64_t now_ns = 0;
    const std::vector<int32_t> first = begin_all(queue, 100, now_ns);
    std::vector<int32_t> under_way = first;
    std::set<int32_t> served(first.begin(), first.end());
    while (!queue.empty()) {
      now_ns += static_cast<int64_t>(rng.below(1000));
      if (!under_way.empty()) {
        const size_t ends = rng.below(under_way.size());
        queue.end(under_way[ends]);
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(ends));
      }
      while (const auto rank = queue.next(now_ns)) {
        under_way.push_back(*rank);
        ASSERT_TRUE(served.insert(*rank).second) << "seed " << seed;
      }
      ASSERT_LE(under_way.size(), static_cast<size_t>(kMost)) << "seed " << seed;
    }
    EXPECT_EQ(served.size(), 100u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trestle
