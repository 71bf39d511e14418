// The C API: how a communicator's rails fare.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/background.h"
#include "base/clock.h"

using namespace trestle;

static_assert(kRailHistory == TRESTLE_RAIL_CHANGES);
static_assert(static_cast<int>(RailState::kConnecting) == trestleRailConnecting &&
              static_cast<int>(RailState::kUp) == trestleRailUp &&
              static_cast<int>(RailState::kEnding) == trestleRailEnding &&
              static_cast<int>(RailState::kDown) == trestleRailDown);

namespace {

// What the structs had in the first version. No caller knows less.
constexpr size_t kFirstSize = offsetof(trestleCommRailStats_t, nowNs) + sizeof(uint64_t);
constexpr size_t kFirstRowSize =
    offsetof(trestleRailStats_t, change) + TRESTLE_RAIL_CHANGES * sizeof(trestleRailChange_t);
constexpr size_t kMostStatsSize = size_t{1} << 16;

template <size_t kRoom>
void copy_text(const std::string& from, char (&to)[kRoom]) {
  const size_t length = std::min(from.size(), kRoom - 1);
  std::memcpy(to, from.data(), length);
  std::memset(to + length, 0, kRoom - length);
}

trestleRailChange_t change_of(const RailChange& from) {
  trestleRailChange_t change = {};
  change.atNs = static_cast<uint64_t>(from.at_ns);
  change.state = static_cast<trestleRailState_t>(from.state);
  copy_text(from.why, change.why);
  return change;
}

trestleRailStats_t row_of(const RailReport& report) {
  trestleRailStats_t row = {};
  row.peer = report.peer;
  row.rails = static_cast<int>(report.rails);
  row.state = static_cast<trestleRailState_t>(report.now().state);
  row.sharePermille = static_cast<int>(report.share_permille);
  row.stateNs = static_cast<uint64_t>(report.now().at_ns);
  row.bytesSent = report.sent_bytes;
  row.bytesAcknowledged = report.acknowledged_bytes;
  row.bytesReceived = report.received_bytes;
  row.bytesQueued = report.queued_bytes;
  row.goodput = report.goodput;
  row.framesAgain = report.frames_sent_again;
  row.connections = report.connections;
  row.losses = report.losses;
  copy_text(report.name, row.name);
  copy_text(report.now().why, row.why);
  for (const RailChange& change : report.history) row.change[row.changes++] = change_of(change);
  return row;
}

Status check(const trestleCommRailStats_t* stats) {
  constexpr const char* kStart = ": start from TRESTLE_RAIL_STATS_INITIALIZER, which sets size, magic and rowSize";
  if (stats == nullptr) return invalid_argument("CommGetRailStats: stats is NULL");
  if (stats->size < kFirstSize || stats->size > kMostStatsSize)
    return invalid_argument("CommGetRailStats: size is " + std::to_string(stats->size) + kStart);
  if (stats->magic != TRESTLE_RAIL_STATS_MAGIC)
    return invalid_argument(std::string("CommGetRailStats: magic is wrong") + kStart);
  if (stats->rowSize < kFirstRowSize || stats->rowSize > kMostStatsSize)
    return invalid_argument("CommGetRailStats: rowSize is " + std::to_string(stats->rowSize) + kStart);
  if (stats->capacity < 0)
    return invalid_argument("CommGetRailStats: capacity is " + std::to_string(stats->capacity) + ": 0 or more");
  if (stats->capacity > 0 && stats->rows == nullptr)
    return invalid_argument("CommGetRailStats: rows is NULL, and capacity is " + std::to_string(stats->capacity) +
                            ": with 0 only the number of rails is written");
  return {};
}

}  // namespace

extern "C" {

trestleResult_t trestleCommGetRailStats(trestleComm_t comm, trestleCommRailStats_t* stats) {
  return with_comm(comm, "CommGetRailStats", [&](Communicator& communicator) -> Status {
    TRY(check(stats));
    const std::vector<RailReport> reports = communicator.engine().rail_reports();
    const size_t written = std::min(reports.size(), static_cast<size_t>(stats->capacity));
    const size_t known = std::min(stats->rowSize, sizeof(trestleRailStats_t));
    auto* to = reinterpret_cast<char*>(stats->rows);
    for (size_t i = 0; i < written; ++i, to += stats->rowSize) {
      const trestleRailStats_t row = row_of(reports[i]);
      std::memcpy(to, &row, known);
    }
    stats->count = static_cast<int>(reports.size());
    stats->nowNs = static_cast<uint64_t>(monotonic_clock().now_ns());
    return {};
  });
}

}  // extern "C"
