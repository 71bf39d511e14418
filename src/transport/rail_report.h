// RailReport: what one rail between this rank and one peer has carried, and how it fares. A value; see
// Transport::rail_reports().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trestle {

enum class RailState : uint8_t {
  kConnecting,  // no connection so far
  kUp,
  kEnding,  // ended here; the peer has not said yet what has come
  kDown,    // lost, or no connection could be made; it may be tried again
};

struct RailChange {
  int64_t at_ns = 0;  // by the transport's clock
  RailState state = RailState::kConnecting;
  std::string why;  // of kEnding and kDown
};

inline constexpr size_t kRailHistory = 8;  // changes that are kept

struct RailReport {
  int32_t peer = 0;
  std::string name;    // of this rank's interface
  uint32_t rails = 1;  // that the two ranks have in common. 1: nothing is acknowledged, so the fields marked * are 0
  uint64_t sent_bytes = 0;          // payloads given to the rail, also those that were sent again, and probes
  uint64_t acknowledged_bytes = 0;  // * of them; never more than sent_bytes
  uint64_t received_bytes = 0;
  uint64_t queued_bytes = 0;        // * under way
  uint64_t goodput = 0;             // * bytes per second; also 0: unknown, or the rail is not up
  uint64_t frames_sent_again = 0;   // * over any rail, because they did not come over this one
  uint64_t connections = 0;         // made so far
  uint64_t losses = 0;              // of them, those that ended without a goodbye
  uint32_t share_permille = 0;      // of the bytes sent to the peer over all its rails
  std::vector<RailChange> history;  // the last kRailHistory, oldest first; at least one: the last is how it is now
  const RailChange& now() const { return history.back(); }
};

}  // namespace trestle
