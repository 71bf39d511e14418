// UnsentLimit: how much a connection may have taken and not sent, so that little waits behind it. The message layer
// says so where it measures its rails (RailEvents::hold_bytes), or the topology file where it tells a rate. Else the
// system would let a slow connection take tens of milliseconds' worth: every permission to send waits behind that. So
// the kernel's own measure is used there.
//
// Over several rails a millisecond's worth is held (bytes_to_hold). Here it is four: on a busy machine the thread that
// writes may have to wait for a processor longer than one, and no other rail carries on meanwhile (all-reduce of 64 MiB
// over 1 Gbit/s was 1.3 % slower with one). A fast connection does not take that long, and stays without a limit: a
// limit costs system calls. A measure may be of a moment at which the peer did not read. So two in a row must say that
// a connection is slow, and the rate that counts falls slowly and rises at once.
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
  // Of what is written between two looks at the kernel's measure.
  static constexpr uint64_t kLookEveryBytes = 512 * 1024;
  // What a connection may take before it gets a limit.
  static constexpr double kTooLongNs = 8e6;
  static constexpr int kHoldMs = 4;

  // made_with: the limit that the socket was made with, because its rate was told; 0: none.
  explicit UnsentLimit(uint64_t made_with = 0) : told_(made_with != 0), set_(made_with) {}

  void wrote(uint64_t bytes) { since_look_ += bytes; }
  // The socket is full. Whether the kernel's measure should be looked at now; saw() follows.
  bool wants_look() const { return !told_ && since_look_ >= kLookEveryBytes; }
  void saw(const SendingRate& now) {
    since_look_ = 0;
    rate_ = std::max(now.bytes_per_s * 1e-9, rate_ * kFading);
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
  static constexpr double kFading = 0.75;  // between two looks

  bool told_;              // somebody else knows the rate
  uint64_t set_;           // of the socket; 0: as it was made
  uint64_t measured_ = 0;  // 0: not measured, or the connection is fast
  bool was_too_long_ = false;
  uint64_t since_look_ = 0;
  double rate_ = 0;  // bytes per nanosecond
};

}  // namespace trestle
