// What a rail's goodput is measured as, behind a bucket that lets some bytes pass at once.
#include "transport/message/goodput.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trestle {
namespace {

constexpr int64_t kRoundTripNs = 200'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kProbe = 16 * 1024;

// A rail of `rate` bytes per nanosecond behind a bucket of `burst` bytes.
struct Bucket {
  double rate;
  double burst;
  int64_t free_ns = 0;
  int64_t acknowledged_ns(uint64_t bytes, int64_t now_ns) {
    free_ns = std::max(free_ns, now_ns) + static_cast<int64_t>(static_cast<double>(bytes) / rate);
    return std::max(now_ns, free_ns - static_cast<int64_t>(burst / rate)) + kRoundTripNs;
  }
};

// One after the other, each once the one before has come. Returns how many of them rode.
int probe(Goodput& goodput, Bucket& bucket, int64_t& now_ns, int count) {
  int rode = 0;
  for (int i = 0; i < count; ++i) {
    const Goodput::Mark mark = goodput.send(kProbe, now_ns, true);
    rode += mark.rides ? 1 : 0;
    now_ns = bucket.acknowledged_ns(kProbe, now_ns);
    goodput.deliver(mark);
    goodput.sample(mark, now_ns);
  }
  return rode;
}

TEST(Goodput, WhatABucketMayHaveLetPassSaysNothing) {
  Goodput goodput;
  Bucket bucket{0.000125, kProbe};
  int64_t now_ns = kSecondNs;
  EXPECT_EQ(probe(goodput, bucket, now_ns, 1), 1);
  EXPECT_EQ(goodput.rate(), 0) << "the bucket was full";
  EXPECT_EQ(probe(goodput, bucket, now_ns, 1), 0);
  EXPECT_NEAR(goodput.rate(), bucket.rate, 0.03 * bucket.rate);
}

TEST(Goodput, APauseFillsTheBucketAgain) {
  Goodput goodput;
  Bucket bucket{0.000125, kProbe};
  int64_t now_ns = kSecondNs;
  probe(goodput, bucket, now_ns, 2);
  for (int i = 0; i < 10; ++i) {
    now_ns += kSecondNs;
    EXPECT_EQ(probe(goodput, bucket, now_ns, 2), 1);
    EXPECT_NEAR(goodput.rate(), bucket.rate, 0.03 * bucket.rate);
  }
}

TEST(Goodput, ARailThatIsLateAsSoonAsItIsUsedIsCorrectedAndProbedLongerFromThenOn) {
  Goodput goodput;
  Bucket bucket{0.000125, 40 * 1024};
  int64_t now_ns = kSecondNs;
  EXPECT_EQ(probe(goodput, bucket, now_ns, 2), 1);
  EXPECT_GT(goodput.rate(), 10 * bucket.rate) << "the bucket is larger than two probes";
  EXPECT_EQ(goodput.most_under_way(), 2 * kProbe) << "so it may not carry much yet";
  probe(goodput, bucket, now_ns, 1);
  EXPECT_LT(goodput.rate(), 3 * bucket.rate);
  EXPECT_EQ(goodput.most_under_way(), kProbe);
  now_ns += 2 * kSecondNs;
  EXPECT_EQ(probe(goodput, bucket, now_ns, 3), 2);
  EXPECT_LT(goodput.rate(), 3 * bucket.rate);
}

TEST(Goodput, WhatMayBeUnderWayDoublesWithEachRoundTrip) {
  Goodput goodput;
  Bucket bucket{0.125, 0};
  int64_t now_ns = kSecondNs;
  probe(goodput, bucket, now_ns, 2);
  for (uint64_t window = goodput.most_under_way(); window < (1u << 20); window *= 2) {
    EXPECT_EQ(goodput.most_under_way(), window);
    const Goodput::Mark mark = goodput.send(window, now_ns, false);
    now_ns = bucket.acknowledged_ns(window, now_ns);
    goodput.deliver(mark);
    goodput.sample(mark, now_ns);
  }
}

TEST(Goodput, ARailThatBecomesFasterIsNoticedByAPairOfProbes) {
  Goodput goodput;
  Bucket bucket{0.000125, 0};
  int64_t now_ns = kSecondNs;
  probe(goodput, bucket, now_ns, 2);
  bucket.rate = 0.125;
  now_ns += kSecondNs;
  probe(goodput, bucket, now_ns, 2);
  EXPECT_GT(goodput.rate(), 0.04) << "of which the round trip takes a part";
}

// The peer was stopped for a while: that looks like a bucket until the rail carries much again.
TEST(Goodput, ABucketThatWasNoneIsForgotten) {
  Goodput goodput;
  Bucket bucket{0.125, 0};
  int64_t now_ns = kSecondNs;
  probe(goodput, bucket, now_ns, 2);
  bucket.free_ns = now_ns + kSecondNs / 10;
  probe(goodput, bucket, now_ns, 1);
  EXPECT_LT(goodput.rate(), 0.01) << "corrected";
  now_ns += kSecondNs;
  EXPECT_EQ(probe(goodput, bucket, now_ns, 3), 2) << "a larger bucket is expected";
  probe(goodput, bucket, now_ns, 100);
  now_ns += kSecondNs;
  EXPECT_EQ(probe(goodput, bucket, now_ns, 3), 1);
}

TEST(Goodput, HeadersMeasureTheRoundTripAlone) {
  Goodput goodput;
  const Goodput::Mark mark = goodput.send(128, kSecondNs, true);
  goodput.deliver(mark);
  goodput.sample(mark, kSecondNs + kRoundTripNs);
  EXPECT_EQ(goodput.rate(), 0);
  EXPECT_EQ(goodput.round_trip_ns(), kRoundTripNs);
  EXPECT_EQ(goodput.queued(), 0u);
}

}  // namespace
}  // namespace trestle
