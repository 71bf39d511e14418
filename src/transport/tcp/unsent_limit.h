// UnsentLimit: how much a connection may have taken and not sent, so that little waits behind it. The message layer
// says so where it measures its rails (RailEvents::hold_bytes). Over a single rail it measures nothing, and the system
// lets a slow connection take tens of milliseconds' worth: every permission to send waits behind that. So the kernel's
// own measure is used there.
//
// Over several rails a millisecond's worth is held (bytes_to_hold). Here it is four: on a busy machine the thread that
// writes may have to wait for a processor longer than one, and no other rail carries on meanwhile (all-reduce of 64 MiB
// over 1 Gbit/s was 1.3 % slower with one). A fast connection never takes that long and stays without a limit: a limit
// costs system calls. A measure may be of a moment at which the peer did not read, so the rate that counts falls
// slowly, and rises at once.
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
  static constexpr uint64_t kHoldMs = 4;

  void wrote(uint64_t bytes) { since_look_ += bytes; }
  // The socket is full. Whether the kernel's measure should be looked at now; saw() follows.
  bool wants_look() const { return since_look_ >= kLookEveryBytes; }
  void saw(const SendingRate& now) {
    since_look_ = 0;
    rate_ = std::max(now.bytes_per_s * 1e-9, rate_ * kFading);
    const bool too_long = static_cast<double>(now.unsent_bytes) > rate_ * kTooLongNs;
    if (rate_ > 0 && (measured_ != 0 || too_long)) measured_ = kHoldMs * bytes_to_hold(rate_);
  }
  // The limit to set now; 0: it may stay as it is. stated: the message layer's, 0: it has none. Small changes are not
  // worth a system call.
  uint64_t change(uint64_t stated) {
    const uint64_t wanted = stated != 0 ? stated : measured_;
    if (wanted == 0 || (wanted >= set_ / 4 * 3 && wanted <= set_ / 2 * 3)) return 0;
    return set_ = wanted;
  }

 private:
  static constexpr double kFading = 0.75;  // between two looks

  uint64_t set_ = 0;       // of the socket; 0: as it was made
  uint64_t measured_ = 0;  // 0: not measured, or the connection is fast
  uint64_t since_look_ = 0;
  double rate_ = 0;  // bytes per nanosecond
};

}  // namespace trestle
