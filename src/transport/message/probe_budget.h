// ProbeBudget: how many measurements one rail of a rank may begin, however many peers the rank has. A measurement is a
// row of at least two probes. Hundreds of ranks that all talk to all others would measure for seconds otherwise, and
// wear each other's rails down.
//
// Data pays for them: a pair of ranks may begin a row after kBytesPerRow, so that about a sixteenth of what it sends
// are probes at the most. The first row over a new connection costs less, because a rail that is not measured carries
// little. One rail begins at most kRowsPerSecond. Pairs with less data share what is free: enough for the peers of a
// small job, and then one row per second.
//
// Owned by a RailTransport, one per rail; shared by the PeerRails of all its peers. Bytes and nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/message/rail_choice.h"

namespace trestle {

class ProbeBudget {
 public:
  static constexpr uint64_t kBytesPerRow = 32 * kProbeBytes;
  static constexpr uint64_t kBytesOfFirstRow = 4 * kProbeBytes;
  static constexpr int64_t kRowsPerSecond = 64;  // and as many at once after a pause
  static constexpr int64_t kFreeRows = 16;       // at once
  static constexpr int64_t kFreeRowEveryNs = 1'000'000'000;

  // Whether a row may begin now; it counts from then on. `bytes`: what waits for the peer, and what was given to any
  // rail to it since the last probe over this one. `first`: over a new connection.
  bool begin_row(uint64_t bytes, bool first, int64_t now_ns) {
    if (bytes >= (first ? kBytesOfFirstRow : kBytesPerRow))
      return take(paid_until_ns_, 1'000'000'000 / kRowsPerSecond, kRowsPerSecond, now_ns);
    return take(free_until_ns_, kFreeRowEveryNs, kFreeRows, now_ns);
  }

 private:
  // until_ns: when all rows that were taken are made up for, at one per `each_ns`.
  static bool take(int64_t& until_ns, int64_t each_ns, int64_t most, int64_t now_ns) {
    const int64_t from_ns = std::max(until_ns, now_ns);
    if (from_ns - now_ns > (most - 1) * each_ns) return false;
    until_ns = from_ns + each_ns;
    return true;
  }

  int64_t paid_until_ns_ = 0;
  int64_t free_until_ns_ = 0;
};

}  // namespace trestle
