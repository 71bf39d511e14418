#include "perf/report/rails.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "perf/report/table.h"

namespace trestle::perf {
namespace {

constexpr std::array kStates = {"connecting", "up", "ending", "down"};  // by trestleRailState_t

}  // namespace

RailRow rail_row(int rank, const trestleRailStats_t& stats) {
  const auto state = static_cast<size_t>(stats.state);
  RailRow row;
  row.rank = rank;
  row.peer = stats.peer;
  row.name = stats.name;
  row.state = state < kStates.size() ? kStates[state] : "unknown";
  row.sent = stats.bytesSent;
  row.acknowledged = stats.bytesAcknowledged;
  row.received = stats.bytesReceived;
  row.queued = stats.bytesQueued;
  row.share_permille = stats.sharePermille;
  row.goodput = stats.goodput;
  row.frames_again = stats.framesAgain;
  row.connections = stats.connections;
  row.losses = stats.losses;
  row.why = stats.why;
  return row;
}

std::string encode(const RailRow& row) {
  std::ostringstream line;
  line << row.rank << ' ' << row.peer << ' ' << row.name << ' ' << row.state << ' ' << row.sent << ' '
       << row.acknowledged << ' ' << row.received << ' ' << row.queued << ' ' << row.share_permille << ' '
       << row.goodput << ' ' << row.frames_again << ' ' << row.connections << ' ' << row.losses << ' ' << row.why;
  return line.str();
}

bool decode(const std::string& line, RailRow& row) {
  std::istringstream in(line);
  in >> row.rank >> row.peer >> row.name >> row.state >> row.sent >> row.acknowledged >> row.received >> row.queued >>
      row.share_permille >> row.goodput >> row.frames_again >> row.connections >> row.losses;
  if (in.fail()) return false;
  in.ignore(1);
  row.why.clear();
  std::getline(in, row.why);
  return true;
}

std::vector<std::string> rail_lines(const std::vector<RailRow>& rows) {
  if (rows.empty()) return {"# rails: none; no message has gone over a network interface"};
  std::vector<std::string> lines;
  lines.push_back(text("# %6s  %6s  %-16s  %-10s  %10s  %7s  %8s  %8s  %8s  %6s", "rank", "peer", "rail", "state",
                       "sent", "share", "goodput", "queued", "again", "lost"));
  lines.push_back(text("# %6s  %6s  %-16s  %-10s  %10s  %7s  %8s  %8s  %8s  %6s", "", "", "", "", "(MB)", "(%)",
                       "(Gbit/s)", "(KB)", "(frames)", ""));
  for (const RailRow& row : rows) {
    std::string line = text("# %6d  %6d  %-16s  %-10s", row.rank, row.peer, row.name.c_str(), row.state.c_str());
    line += "  " + format_number(static_cast<double>(row.sent) / 1e6, 10);
    line += text("  %7.1f", row.share_permille / 10.0);
    line += row.goodput == 0 ? text("  %8s", "N/A") : "  " + format_number(static_cast<double>(row.goodput) * 8e-9, 8);
    line += "  " + format_number(static_cast<double>(row.queued) / 1e3, 8);
    line += text("  %8" PRIu64 "  %6" PRIu64, row.frames_again, row.losses);
    lines.push_back(row.why.empty() ? line : line + "  " + row.why);
  }
  return lines;
}

void write_rails(Json& json, const std::vector<RailRow>& rows) {
  json.open('[');
  for (const RailRow& row : rows) {
    json.open('{').key("rank").integer(row.rank).key("peer").integer(row.peer);
    json.key("rail").text(row.name).key("state").text(row.state);
    json.key("sent_bytes").integer(row.sent).key("acknowledged_bytes").integer(row.acknowledged);
    json.key("received_bytes").integer(row.received).key("queued_bytes").integer(row.queued);
    json.key("share_pct").number(row.share_permille / 10.0);
    json.key("goodput_bytes_per_second").integer(row.goodput != 0 ? std::optional(row.goodput) : std::nullopt);
    json.key("retransmitted_frames").integer(row.frames_again).key("connections").integer(row.connections);
    json.key("lost").integer(row.losses);
    json.key("why").text(row.why).close('}');
  }
  json.close(']');
}

}  // namespace trestle::perf
