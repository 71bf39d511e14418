// Goodput: how fast one rail carries data to one peer, from what the peer acknowledges.
//
// Delivery rates as in "Delivery Rate Estimation" (Cheng et al., draft-cheng-iccrg-delivery-rate-estimation, section
// 3): a sample counts the bytes that the rail delivered between the moment a fragment was sent and the moment it is
// acknowledged. It divides them by the longer of two intervals, that of sending and that of acknowledging. Samples of
// times at which the rail had too little to do only raise the estimate. The others are smoothed.
//
// Bursts. After a pause a shaper (a token bucket) lets some bytes pass at once, whatever its rate is. So the first
// bytes after a pause "ride": they may lower the estimate, but never raise it. At first kLeastBurstBytes ride. If a
// rail is much slower than its estimate as soon as it is used, a larger bucket has misled the estimate. Then the
// estimate is corrected at once, and twice as many bytes ride from then on. A peer that did not run for a while looks
// the same. So if bytes that do not ride arrive at a much higher rate, and this lasts, there is no such bucket:
// kLeastBurstBytes ride again.
//
// Slow start. A rail may not have more under way than twice what it has delivered within one round trip
// (most_under_way()). So a rail that was measured wrongly delays little.
//
// Owned by a PeerRails, used under the rank's progress lock. Bytes and nanoseconds.
#pragma once

#include <cstdint>

namespace trestle {

class Goodput {
 public:
  static constexpr uint64_t kLeastBurstBytes = 16 * 1024;
  static constexpr uint64_t kMostBurstBytes = 1024 * 1024;

  // What is kept of a fragment until it is acknowledged.
  struct Mark {
    uint64_t bytes = 0;
    uint64_t delivered = 0;     // before it was sent
    uint64_t rode = 0;          // of these
    int64_t delivered_ns = 0;   // when the newest of these was acknowledged; if nothing was under way: sent_ns
    int64_t first_sent_ns = 0;  // when the newest of these was sent; if nothing was under way: sent_ns
    int64_t sent_ns = 0;
    bool starved = false;  // the rail could have carried more
    bool rides = false;    // a bucket may have let it pass at once
  };

  // A fragment of `bytes` is sent. starved: nothing is left that the rail could send, and it has room.
  Mark send(uint64_t bytes, int64_t now_ns, bool starved);
  // The fragment has come. sample() follows for the last one of an acknowledgement.
  void deliver(const Mark& mark);
  void sample(const Mark& mark, int64_t now_ns);
  // Nothing that is under way will be acknowledged. The estimate stays.
  void forget_under_way() { queued_ = 0; }

  // Bytes per nanosecond; 0: unknown.
  double rate() const { return rate_; }
  // Of a fragment and its acknowledgement, the least of the last 10 s; 0: unknown.
  int64_t round_trip_ns() const { return round_trip_ns_; }
  // Sent and not acknowledged.
  uint64_t queued() const { return queued_; }
  // Acknowledged so far.
  uint64_t delivered() const { return delivered_; }
  // How much the rail has shown that it carries.
  uint64_t most_under_way() const { return most_under_way_; }

 private:
  void measure_round_trip(const Mark& mark, int64_t now_ns);
  void raise(double sample, bool starved, bool confirmed);
  void correct(double sample);
  bool is_late(uint64_t bytes, double interval_ns) const;

  double rate_ = 0;
  int64_t round_trip_ns_ = 0;
  int64_t round_trip_seen_ns_ = 0;
  uint64_t queued_ = 0;
  uint64_t delivered_ = 0;
  uint64_t rode_ = 0;  // of these
  int64_t delivered_ns_ = 0;
  int64_t first_sent_ns_ = 0;
  uint64_t burst_ = kLeastBurstBytes;
  uint64_t rides_left_ = kLeastBurstBytes;  // bytes that a bucket would let pass at once now
  uint64_t most_under_way_ = kLeastBurstBytes;
  bool doubtful_ = false;      // the estimate has risen much, and is not confirmed
  uint64_t confirmed_at_ = 0;  // bytes delivered from which on an estimate that has risen much counts as confirmed
};

}  // namespace trestle
