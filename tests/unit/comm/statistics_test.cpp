// Statistics on a clock that the test advances: counters, time in use, and the line for the log.
#include "engine/run/statistics.h"

#include <gtest/gtest.h>

#include "comm/watch/statistics_text.h"

namespace trestle {
namespace statistics_test {
namespace {

class HandClock : public Clock {
 public:
  int64_t now_ns() override { return now; }
  int64_t now = 1000;
};

// Rank 0 of a 2x2 grid.
class StatisticsOfAGrid : public testing::Test {
 protected:
  HandClock clock_;
  Statistics statistics_{&clock_, {kFlat, 0, 1, 1}};
};

TEST_F(StatisticsOfAGrid, MessagesCountForTheDimensionOfTheirPeer) {
  statistics_.sent(1, 100, false);
  statistics_.sent(2, 1000, true);
  statistics_.sent(3, 10, false);
  statistics_.sent(0, 5, false);  // to itself
  statistics_.received(1, 0);
  const StatisticsReading reading = statistics_.read();
  EXPECT_EQ(reading.dimensions[0].bytes_sent, 100u);
  EXPECT_EQ(reading.dimensions[0].messages_received, 1u);
  EXPECT_EQ(reading.dimensions[0].bytes_mapped, 0u);
  EXPECT_EQ(reading.dimensions[1].bytes_sent, 1010u);
  EXPECT_EQ(reading.dimensions[1].messages_sent, 2u);
  EXPECT_EQ(reading.dimensions[1].bytes_mapped, 1000u);
}

TEST_F(StatisticsOfAGrid, ADimensionIsInUseWhileAnyPhaseIs) {
  const uint32_t inner = statistics_.dimension_bit(1);
  const uint32_t both = inner | statistics_.dimension_bit(3);
  statistics_.phase_started(inner);
  clock_.now += 10;
  statistics_.phase_started(both);
  clock_.now += 5;
  EXPECT_EQ(statistics_.read().dimensions[0].busy_ns, 15u) << "still in use";
  EXPECT_EQ(statistics_.read().dimensions[1].busy_ns, 5u);
  statistics_.phase_ended(inner);
  clock_.now += 1;
  statistics_.phase_ended(both);
  clock_.now += 100;
  statistics_.phase_started(statistics_.dimension_bit(0));  // a phase of messages to itself
  clock_.now += 100;
  EXPECT_EQ(statistics_.read().dimensions[0].busy_ns, 16u);
  EXPECT_EQ(statistics_.read().dimensions[1].busy_ns, 6u);
  statistics_.phase_started(inner);
  clock_.now += 4;
  statistics_.phase_ended(inner);
  EXPECT_EQ(statistics_.read().dimensions[0].busy_ns, 20u);
  EXPECT_EQ(statistics_.read().elapsed_ns, 220u);
}

TEST_F(StatisticsOfAGrid, ThreadsThatWaitAddUp) {
  statistics_.waiting(1);
  clock_.now += 10;
  statistics_.waiting(1);
  clock_.now += 10;
  EXPECT_EQ(statistics_.read().waited_ns, 30u);
  statistics_.waiting(-1);
  statistics_.waiting(-1);
  clock_.now += 10;
  EXPECT_EQ(statistics_.read().waited_ns, 30u);
}

TEST_F(StatisticsOfAGrid, CallsAddUpAndMakeALine) {
  statistics_.ran_express(Collective::kAllReduce, {8, 8});
  statistics_.submitted(Collective::kAllReduce, {uint64_t{3} << 30, 1}, false);
  statistics_.submitted(Collective::kBarrier, {}, true);
  statistics_.ended(Collective::kAllReduce, false);
  statistics_.ended(Collective::kBarrier, true);
  statistics_.sent(1, 2048, false);
  statistics_.phase_started(statistics_.dimension_bit(2));
  statistics_.waiting(1);
  clock_.now += 1'500'000'000;
  const StatisticsReading reading = statistics_.read();
  const CollectiveCounts total = reading.total();
  EXPECT_EQ(total.started, 3u);
  EXPECT_EQ(total.completed, 2u);
  EXPECT_EQ(total.failed, 1u);
  EXPECT_EQ(total.express, 2u);
  EXPECT_EQ(total.by_caller, 1u);
  Topology grid;
  grid.dimensions.resize(2);
  EXPECT_EQ(to_text(reading, grid),
            "3 operations (1 failed), 3.0 GiB given, waited 1.5 s of 1.5 s; dimension 1: 2.0 KiB sent, busy 0 %; "
            "dimension 2: 0 B sent, busy 100 %");
}

TEST(RailTexts, AreOneForEachRailOfThisRank) {
  const auto report = [](int32_t peer, const char* name, uint32_t rails, uint64_t sent, uint64_t losses) {
    RailReport one;
    one.peer = peer;
    one.name = name;
    one.rails = rails;
    one.sent_bytes = sent;
    one.losses = losses;
    return one;
  };
  const std::vector<RailReport> reports = {report(1, "eth0", 2, 3 << 20, 0), report(1, "eth1", 2, 1 << 20, 1),
                                           report(2, "eth0", 1, 1 << 30, 0), report(3, "eth0", 2, 3 << 20, 1),
                                           report(3, "eth1", 2, 1 << 20, 0)};
  EXPECT_EQ(rail_texts(reports), (std::vector<std::string>{"rail eth0: 6.0 MiB sent, 75 %, 1 connection lost",
                                                           "rail eth1: 2.0 MiB sent, 25 %, 1 connection lost"}));
  EXPECT_TRUE(rail_texts(std::span(reports).subspan(2, 1)).empty()) << "no peer with several rails";
  EXPECT_EQ(rail_texts(std::vector{report(1, "a", 2, 0, 0)}),
            std::vector<std::string>{"rail a: 0 B sent, 0 %, 0 connections lost"});
}

TEST(ByteMeter, KeepsItsPeak) {
  ByteMeter meter;
  meter.add(10);
  meter.add(20);
  meter.subtract(15);
  meter.add(1);
  EXPECT_EQ(meter.now(), 16u);
  EXPECT_EQ(meter.peak(), 30u);
}

}  // namespace
}  // namespace statistics_test
}  // namespace trestle
