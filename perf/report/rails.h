// The text of -X: how the rails between ranks fare, one row per rank, peer and rail.
//
// Pure functions, any thread; the caller gathers the rows of all ranks, and prints.
#pragma once

#include <trestle/trestle.h>

#include <cstdint>
#include <string>
#include <vector>

#include "perf/report/json.h"

namespace trestle::perf {

struct RailRow {
  int rank = 0;
  int peer = 0;
  std::string name;   // of the interface
  std::string state;  // "up"
  uint64_t sent = 0;  // bytes, as the next three
  uint64_t acknowledged = 0;
  uint64_t received = 0;
  uint64_t queued = 0;
  int share_permille = 0;
  uint64_t goodput = 0;  // bytes per second; 0: unknown
  uint64_t frames_again = 0;
  uint64_t connections = 0;
  uint64_t losses = 0;
  std::string why;  // it is not up
};

RailRow rail_row(int rank, const trestleRailStats_t& stats);

// A row as one line of at most 420 bytes, as it travels between ranks. False: it is no row.
std::string encode(const RailRow& row);
bool decode(const std::string& line, RailRow& row);

// The lines of the table: its heading, then the rows. Without rows, a sentence that says so. Programs that read the
// table of results take all these lines for comments.
std::vector<std::string> rail_lines(const std::vector<RailRow>& rows);
// An array of objects.
void write_rails(Json& json, const std::vector<RailRow>& rows);

}  // namespace trestle::perf
