// The parts of an exchange that no program can see from outside: whose decision counts, and which time is whose.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "compress/exchange/decision.h"
#include "compress/exchange/exchange.h"
#include "support/ranks.h"

namespace trestle {
namespace {

constexpr const char* kFunction = "Test";

RankCalls calls_of(trestleComm_t comm) {
  Result<RankCalls> calls = RankCalls::make(comm, [] {});
  EXPECT_TRUE(calls.ok());
  return std::move(calls).value();
}

ExchangeSettings settings_of(int ranks) {
  ExchangeSettings settings;
  settings.count = 1000;
  settings.workers = static_cast<uint32_t>(ranks);
  settings.cost = LinkCost{1e-5, 1e-9};
  return settings;
}

void expect_equal(const ExchangeDecision& is, const ExchangeDecision& should) {
  EXPECT_EQ(is.plan, should.plan);
  EXPECT_EQ(is.cost.startup_s, should.cost.startup_s);
  EXPECT_EQ(is.cost.per_byte_s, should.cost.per_byte_s);
  EXPECT_EQ(is.mean_gain, should.mean_gain);
  EXPECT_EQ(is.plan_changes, should.plan_changes);
  EXPECT_EQ(is.gain_changes, should.gain_changes);
  EXPECT_EQ(is.link_changes, should.link_changes);
  EXPECT_EQ(is.measures, should.measures);
}

// Each rank would decide otherwise, as on hosts whose logarithms differ.
TEST(ExchangeDecisions, AreRankZeros) {
  for (const int ranks : {1, 2, 5}) {
    ranks::on_threads({.ranks = ranks, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      const RankCalls calls = calls_of(comm);
      ExchangeChoice choice(settings_of(ranks)), of_zero(settings_of(ranks));
      ExchangeReview review;
      review.gains = {0.5, 0.25};
      for (int round = 1; round <= 3; ++round) {
        const auto change = [&](ExchangeChoice& own, int as_rank) {
          own.review(review);
          own.set_ratio(0.25 / (round + as_rank));
        };
        change(of_zero, 0);
        ASSERT_TRUE(decide(calls, kFunction, choice, [&](ExchangeChoice& own) { change(own, rank); }).ok());
        expect_equal(choice.decision(), of_zero.decision());
      }
    });
  }
}

// ---- statistics

class HandClock : public Clock {
 public:
  int64_t now_ns() override { return now_.load(); }
  void forward(int64_t ns) { now_.fetch_add(ns); }

 private:
  std::atomic<int64_t> now_{1};
};

uint64_t all_reduces(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_EQ(trestleCommGetStats(comm, &stats), trestleSuccess);
  return stats.collective[trestleCollAllReduce].started;
}

// One rank comes an hour late to a review. Its clock is set by hand, so nothing else takes time.
TEST(ExchangeStatistics, TheWaitOfAReviewIsNotSelection) {
  constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;
  ranks::isolated([&] {
    HandClock clocks[2];
    std::atomic<trestleComm_t> waiting{nullptr};
    std::atomic<uint64_t> before{0};
    // Over tcp there is no express path, whose calls count only when they are complete.
    ranks::run_threads({.ranks = 2, .transport = "tcp"}, [&](int rank, trestleComm_t comm) {
      ExchangeArguments arguments;
      arguments.settings = settings_of(2);
      arguments.settings.method = SparseMethod::kExact;
      arguments.settings.ratio = 0.1;
      arguments.settings.review_steps = 1;
      arguments.clock = &clocks[rank];
      const auto made = TopKExchange::make(comm, arguments, {});
      ASSERT_TRUE(made.ok());
      TopKExchange& exchange = *made.value();
      std::vector<float> gradient(1000, 1), residual(1000), result(1000);
      const auto bytes_of = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
      const auto step = [&] { return exchange.step(bytes_of(gradient), bytes_of(residual), bytes_of(result)); };
      ASSERT_TRUE(step().ok());
      if (rank == 0) {
        before = all_reduces(comm);
        waiting = comm;
        ASSERT_TRUE(step().ok());
        EXPECT_EQ(exchange.statistics().compress_ns, 0u);
        EXPECT_EQ(exchange.statistics().exchange_ns, static_cast<uint64_t>(kHourNs));
        return;
      }
      ranks::wait_until([&] { return waiting.load() != nullptr && all_reduces(waiting.load()) > before.load(); });
      clocks[0].forward(kHourNs);
      ASSERT_TRUE(step().ok());
      EXPECT_EQ(exchange.statistics().exchange_ns, 0u);
    });
  });
}

}  // namespace
}  // namespace trestle
