// UnsentLimit: how much a connection may have taken and not sent, so that little waits behind it. The message layer
// says so where it measures its rails (RailEvents::hold_bytes), or the topology file where it tells a rate. Else the
// system would let a slow connection take tens of milliseconds' worth: every permission to send waits behind that. So
// the rate is measured there: the bytes that were acknowledged, over the time in which there was something to send
// (SendingCounts). The kernel's own estimate (tcpi_delivery_rate) is of a round trip. Behind a token bucket that was
// full it told 3 Gbit/s of a link of 200 Mbit/s.
//
// Ranks that exchange data need the limit most. Without it, a rank that begins first gives all of its message to the
// kernel, gets the other one's, and begins the next operation, while its old message still goes out. From there on the
// two directions of the link take turns. All-gathers of 1 MiB between two hosts reached 0.6 of 200 Mbit/s.
//
// Over several rails a millisecond's worth is held (bytes_to_hold). Here it is four: on a busy machine the thread that
// writes may have to wait for a processor longer than one, and no other rail carries on meanwhile (all-reduce of 64 MiB
// over 1 Gbit/s was 1.3 % slower with one). A fast connection does not take that long, and stays without a limit: a
// limit costs system calls. Two measures in a row must say that a connection is slow, and the rate that counts
// falls slowly and rises at once: an acknowledgement that a peer delays looks like a slow link.
//
// Bookkeeping only, no descriptors. Owned by a TcpRail, one for each connection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/message/rail_choice.h"
#include "transport/socket/socket.h"

namespace trestle {

class UnsentLimit {
 public:
  // Of what is written between two looks at the kernel's counts.
  static constexpr uint64_t kLookEveryBytes = 512 * 1024;
  // What a connection may take before it gets a limit.
  static constexpr double kTooLongNs = 8e6;
  static constexpr int kHoldMs = 4;
  // The kernel counts time in ticks of up to 10 ms. A measure is of longer than that.
  static constexpr uint64_t kMeasureUs = 16'000;

  // made_with: the limit that the socket was made with, because its rate was told; 0: none.
  explicit UnsentLimit(uint64_t made_with = 0) : told_(made_with != 0), set_(made_with) {}

  void wrote(uint64_t bytes) { since_look_ += bytes; }
  // Something was written. Whether the kernel's counts should be looked at now; saw() follows.
  bool wants_look() const { return !told_ && since_look_ >= kLookEveryBytes; }
  void saw(const SendingCounts& now) {
    since_look_ = 0;
    const uint64_t us = now.sending_us - last_.sending_us;
    if (now.sending_us < last_.sending_us || us < kMeasureUs) return;
    const double rate = 1e-3 * static_cast<double>(now.acked_bytes - last_.acked_bytes) / static_cast<double>(us);
    rate_ = std::max(rate, rate_ * kFading);
    last_ = now;
    const bool too_long = rate_ > 0 && static_cast<double>(now.unsent_bytes) > rate_ * kTooLongNs;
    if (measured_ != 0 || (too_long && was_too_long_)) measured_ = bytes_to_hold(kHoldMs * rate_);
    was_too_long_ = too_long;
  }
  // The limit to set now; 0: it may stay as it is. wanted: the message layer's, 0: it has none, or none yet. Small
  // changes are not worth a system call.
  uint64_t change(uint64_t wanted) {
    told_ = told_ || wanted != 0;
    const uint64_t limit = wanted != 0 ? wanted : measured_;
    if (limit == 0 || (limit >= set_ / 4 * 3 && limit <= set_ / 2 * 3)) return 0;
    return set_ = limit;
  }

 private:
  static constexpr double kFading = 0.75;  // between two measures

  bool told_;              // somebody else knows the rate
  uint64_t set_;           // of the socket; 0: as it was made
  uint64_t measured_ = 0;  // 0: not measured, or the connection is fast
  bool was_too_long_ = false;
  uint64_t since_look_ = 0;
  double rate_ = 0;     // bytes per nanosecond
  SendingCounts last_;  // when it was measured last
};

}  // namespace trestle
