// Which of many outgoing connections may be made at a time.
#include "transport/tcp/connect_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
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

TEST(ConnectQueue, FrozenPeersDoNotKeepTheOthersWaiting) {
  ConnectQueue queue;
  begin_all(queue, kMost + 1, 5);
  EXPECT_EQ(queue.due_ns(), 5 + ConnectQueue::kSlowNs);
  EXPECT_FALSE(queue.next(4 + ConnectQueue::kSlowNs));
  EXPECT_EQ(queue.next(5 + ConnectQueue::kSlowNs), kMost);
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
