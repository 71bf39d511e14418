// The rows of -X: as a table, as JSON, and on their way between ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "perf/report/json.h"
#include "perf/report/rails.h"

namespace trestle::perf {
namespace {

RailRow lost_rail() {
  trestleRailStats_t stats = {};
  stats.peer = 1;
  stats.rails = 2;
  stats.state = trestleRailDown;
  stats.sharePermille = 333;
  stats.bytesSent = 12'345'678;
  stats.bytesAcknowledged = 12'000'000;
  stats.bytesReceived = 11'000'000;
  stats.framesAgain = 7;
  stats.connections = 2;
  stats.losses = 2;
  std::strcpy(stats.name, "d1r2");
  std::strcpy(stats.why, "d1r2 is \"down\"");
  return rail_row(0, stats);
}

RailRow busy_rail() {
  RailRow row = lost_rail();
  row.name = "d1r1";
  row.state = "up";
  row.share_permille = 667;
  row.goodput = 25'000'000;
  row.queued = 65'536;
  row.frames_again = row.losses = 0;
  row.connections = 1;
  row.why.clear();
  return row;
}

TEST(PerfRails, AreATableOfComments) {
  const std::vector<std::string> lines = rail_lines({busy_rail(), lost_rail()});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(
      lines[0],
      "#   rank    peer  rail              state             sent    share   goodput    queued     again    lost");
  EXPECT_EQ(
      lines[1],
      "#                                                     (MB)      (%)  (Gbit/s)      (KB)  (frames)        ");
  EXPECT_EQ(
      lines[2],
      "#      0       1  d1r1              up               12.35     66.7      0.20     65.54         0       0");
  EXPECT_EQ(
      lines[3],
      "#      0       1  d1r2              down             12.35     33.3       N/A      0.00         7       2  "
      "d1r2 is \"down\"");
  EXPECT_EQ(rail_lines({}), std::vector<std::string>{"# rails: none; no message has gone over a network interface"});
}

TEST(PerfRails, TravelAsLines) {
  RailRow widest = lost_rail();
  widest.rank = widest.peer = widest.share_permille = std::numeric_limits<int>::max();
  widest.name = std::string(TRESTLE_RAIL_NAME_BYTES - 1, 'n');
  widest.state = "connecting";
  for (uint64_t* number : {&widest.sent, &widest.acknowledged, &widest.received, &widest.queued, &widest.goodput,
                           &widest.frames_again, &widest.connections, &widest.losses})
    *number = std::numeric_limits<uint64_t>::max();
  widest.why = std::string(TRESTLE_RAIL_WHY_BYTES - 1, 'w');
  EXPECT_LE(encode(widest).size(), 420u);
  for (const RailRow& row : {busy_rail(), lost_rail(), widest}) {
    RailRow came;
    ASSERT_TRUE(decode(encode(row), came));
    EXPECT_EQ(encode(came), encode(row));
    EXPECT_EQ(came.why, row.why);
  }
  RailRow none;
  EXPECT_FALSE(decode("", none));
  EXPECT_FALSE(decode("0 1 d1r1 up 5", none));
}

TEST(PerfRails, AreObjectsInTheReport) {
  Json json;
  write_rails(json, {busy_rail(), lost_rail()});
  EXPECT_EQ(json.str(),
            R"([{"rank":0,"peer":1,"rail":"d1r1","state":"up","sent_bytes":12345678,"acknowledged_bytes":12000000,)"
            R"("received_bytes":11000000,"queued_bytes":65536,"share_pct":66.7,"goodput_bytes_per_second":25000000,)"
            R"("retransmitted_frames":0,"connections":1,"lost":0,"why":""},)"
            R"({"rank":0,"peer":1,"rail":"d1r2","state":"down","sent_bytes":12345678,"acknowledged_bytes":12000000,)"
            R"("received_bytes":11000000,"queued_bytes":0,"share_pct":33.3,"goodput_bytes_per_second":null,)"
            R"("retransmitted_frames":7,"connections":2,"lost":2,"why":"d1r2 is \"down\""}])");
}

}  // namespace
}  // namespace trestle::perf
