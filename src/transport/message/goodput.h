// Goodput: how fast one rail carries data to one peer, from what the peer acknowledges.
//
// Delivery rates as in "Delivery Rate Estimation" (Cheng et al., draft-cheng-iccrg-delivery-rate-estimation, section
// 3): between the moment a fragment was sent and the moment it is acknowledged, the rail delivered so many bytes. The
// longer of the two intervals, sending and acknowledging, counts. Samples of times at which the rail had too little to
// do only raise the estimate. The others are smoothed.
//
// Owned by a PeerRails, used under the rank's progress lock. Bytes and nanoseconds.
#pragma once

#include <cstdint>

namespace trestle {

class Goodput {
 public:
  // What is kept of a fragment until it is acknowledged.
  struct Mark {
    uint64_t bytes = 0;
    uint64_t delivered = 0;     // before it was sent
    int64_t delivered_ns = 0;   // when the last of them was acknowledged
    int64_t first_sent_ns = 0;  // of the fragments under way
    int64_t sent_ns = 0;
    bool starved = false;  // the rail could have carried more
  };

  // A fragment of `bytes` is sent. starved: nothing is left that the rail could send, and it has room.
  Mark send(uint64_t bytes, int64_t now_ns, bool starved);
  // The fragment has come. sample() follows for the last one of an acknowledgement.
  void deliver(const Mark& mark);
  void sample(const Mark& mark, int64_t now_ns);
  // Nothing that is under way will be acknowledged. The estimate stays.
  void forget_under_way() { queued_ = 0; }

  // Bytes per nanosecond; 0 as long as nothing was acknowledged.
  double rate() const { return rate_; }
  // Of a fragment and its acknowledgement, the least of the last 10 s; 0: unknown.
  int64_t round_trip_ns() const { return round_trip_ns_; }
  // Sent and not acknowledged.
  uint64_t queued() const { return queued_; }
  // Acknowledged so far.
  uint64_t delivered() const { return delivered_; }

 private:
  double rate_ = 0;
  int64_t round_trip_ns_ = 0;
  int64_t round_trip_seen_ns_ = 0;
  uint64_t queued_ = 0;
  uint64_t delivered_ = 0;
  int64_t delivered_ns_ = 0;
  int64_t first_sent_ns_ = 0;
};

}  // namespace trestle
