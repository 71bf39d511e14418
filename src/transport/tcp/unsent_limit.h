// UnsentLimit: how much a connection may have taken and not sent, so that little waits behind it. The message layer
// says so where it measures its rails (RailEvents::hold_bytes), or the topology file where it tells a rate. Else the
// system would let a slow connection take tens of milliseconds' worth: every permission to send waits behind that. So
// it is found out there which connections are slow.
//
// Ranks that exchange data need the limit most. Without it, a rank that begins first gives all of its message to the
// kernel, gets the other one's, and begins the next operation, while its old message still goes out. From there on the
// two directions of the link take turns. All-gathers of 1 MiB between two hosts reached 0.6 of 200 Mbit/s.
//
// A connection is slow if it still has not sent what it had taken 8 ms before, though the peer had room for it. Two
// such looks must follow each other. The kernel's estimate (tcpi_delivery_rate) does not tell: behind a token bucket
// that was full it said 3 Gbit/s of a link of 200 Mbit/s. Nor does the time in which data was not acknowledged: a peer
// may delay its acknowledgement by 40 ms. Only for a connection that was found to be slow that time is good enough, to
// follow its rate. The rate that counts falls slowly and rises at once.
//
// Over several rails a millisecond's worth is held (bytes_to_hold). Here it is four: on a busy machine the thread that
// writes may have to wait for a processor longer than one, and no other rail carries on meanwhile (all-reduce of 64 MiB
// over 1 Gbit/s was 1.3 % slower with one). A fast connection stays without a limit: a limit costs system calls.
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
  // A connection that holds more for longer is slow.
  static constexpr uint64_t kMuchBytes = 64 * 1024;
  static constexpr int64_t kTooLongNs = 8'000'000;
  static constexpr int kHoldMs = 4;
  // The kernel counts time in ticks of up to 10 ms. The rate of a slow connection is measured over longer than that.
  static constexpr uint64_t kMeasureUs = 16'000;

  // made_with: the limit that the socket was made with, because its rate was told; 0: none.
  explicit UnsentLimit(uint64_t made_with = 0) : told_(made_with != 0), set_(made_with) {}

  void wrote(uint64_t bytes) { since_look_ += bytes; }
  // Something was written. Whether the kernel's counts should be looked at now; saw() follows.
  bool wants_look() const { return !told_ && since_look_ >= kLookEveryBytes; }
  void saw(const SendingCounts& now, int64_t now_ns) {
    since_look_ = 0;
    if (measured_ != 0) return follow(now);
    looks_again_ = now.unsent_bytes >= kMuchBytes;
    if (!looks_again_) was_too_long_ = false;
    before_ = now;
    before_ns_ = now_ns;
  }
  // Whether there should be a look kTooLongNs after the last one; saw_again() follows then.
  bool looks_again() const { return looks_again_; }
  bool wants_second_look(int64_t now_ns) const { return now_ns - before_ns_ >= kTooLongNs; }
  void saw_again(const SendingCounts& now, int64_t now_ns) {
    looks_again_ = false;
    const uint64_t acked = now.acked_bytes - before_.acked_bytes;
    const bool too_long =
        now.unsent_bytes > 0 && acked > 0 && acked <= before_.unsent_bytes && now.waiting_us == before_.waiting_us;
    if (too_long) rate_ = std::max(rate_, static_cast<double>(acked) / static_cast<double>(now_ns - before_ns_));
    if (too_long && was_too_long_) measured_ = bytes_to_hold(kHoldMs * rate_);
    if (!too_long) rate_ = 0;
    was_too_long_ = too_long;
    before_ = now;
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

  void follow(const SendingCounts& now) {
    const uint64_t us = now.sending_us - before_.sending_us;
    if (now.sending_us < before_.sending_us || us < kMeasureUs) return;
    const double rate = 1e-3 * static_cast<double>(now.acked_bytes - before_.acked_bytes) / static_cast<double>(us);
    rate_ = std::max(rate, rate_ * kFading);
    before_ = now;
    measured_ = bytes_to_hold(kHoldMs * rate_);
  }

  bool told_;              // somebody else knows the rate
  uint64_t set_;           // of the socket; 0: as it was made
  uint64_t measured_ = 0;  // 0: the connection was not found to be slow
  bool looks_again_ = false;
  bool was_too_long_ = false;
  uint64_t since_look_ = 0;
  double rate_ = 0;  // bytes per nanosecond
  SendingCounts before_;
  int64_t before_ns_ = 0;
};

}  // namespace trestle
