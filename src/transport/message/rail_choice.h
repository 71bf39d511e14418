// Which rail takes how much of what waits for a peer, and when rails that are lost or idle are tried. The message layer
// (peer_rails.h) decides with these functions, and so does the simulator, so that both divide data alike. But the
// simulator does not know that what is under way is late (RailLoad::late_ns). Pure functions, any thread.
//
// Loads are by rail: what is known of each of the rails to one peer. Bytes and nanoseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/message/shares.h"

namespace trestle {

inline constexpr uint64_t kLeastFragmentBytes = 8 * 1024;  // unless it is the end of its message
inline constexpr uint64_t kMostFragmentBytes = 1024 * 1024;
inline constexpr uint64_t kProbeBytes = 16 * 1024;           // measure a rail of unknown goodput
inline constexpr int64_t kFirstProbePauseNs = 10'000'000;    // before a rail that carries nothing is measured again
inline constexpr int64_t kProbeEveryNs = 1'000'000'000;      // at the most
inline constexpr int64_t kLookAtRailsNs = 200'000'000;       // between two looks whether interfaces are down
inline constexpr int64_t kFirstRailBackoffNs = 100'000'000;  // before a rail that was lost is tried again
inline constexpr int64_t kMostRailBackoffNs = 5'000'000'000;

constexpr int64_t next_rail_backoff_ns(int64_t backoff_ns) {
  return std::clamp(2 * backoff_ns, kFirstRailBackoffNs, kMostRailBackoffNs);
}

// The pause after this one. A rate that has doubled begins anew. One measurement can say little: soon after a rail is
// up its peer may not run yet, and later the rail may be full of data for others.
constexpr int64_t next_probe_pause_ns(int64_t pause_ns) {
  return std::clamp(2 * pause_ns, kFirstProbePauseNs, kProbeEveryNs);
}
// Whether a fragment of so many bytes measures the rail. Small ones measure no more than the round trip.
constexpr bool measures(uint64_t bytes) {
  return bytes >= kLeastFragmentBytes;
}

// Messages to the peer that may go, as far as no rail has taken them.
struct WaitingBytes {
  uint64_t front = 0;           // of the oldest message; 1 if it has no bytes
  bool front_is_whole = false;  // it must not be cut
  uint64_t all = 0;
};

// How much a rail should have under way, so that it is never idle, and delays little if it becomes slow or was measured
// wrongly. The load is as it was measured or stated.
uint64_t window_bytes(const RailLoad& rail);
// Whether the rail has so much under way that it must not take more of the oldest message, which has `front` bytes
// left.
bool window_is_full(const RailLoad& rail, uint64_t front);

// How much a rail of that rate (bytes per nanosecond) should have taken and not sent (RailEvents::hold_bytes): a
// millisecond's worth. 0: its rate is not known. Two ranks that exchange data need this: acknowledgements and
// permissions to send wait behind what is held, and the more is held, the fewer segments are on their way. More for a
// rail that is written to at longer intervals was tried: all-to-all of 64 MiB over 1000 + 500 Mbit/s reached 0.85 to
// 0.95 of both rails then, instead of 0.97.
uint64_t bytes_to_hold(double rate);

// Before anything is known of any rail, the first one that is up carries everything. loads.size(): none is up.
void assume_first(std::span<RailLoad> loads, size_t first_up);

// Bytes of the oldest message that `rail` takes now: so much that all rails would end together, less towards the end.
// 0: other rails are better. The rail's window (window_bytes) is not full.
uint64_t bytes_to_take(std::span<const RailLoad> loads, size_t rail, uint64_t window, const WaitingBytes& waiting);

// Whether a rail could have carried more than it has under way, while `waiting` bytes are left: because there is too
// little, or because it may not have enough under way to be never idle. Then its goodput says little.
bool is_starved(uint64_t waiting, uint64_t under_way, const RailLoad& rail);

}  // namespace trestle
