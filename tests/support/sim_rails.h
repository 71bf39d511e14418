// SimRails: rails between RailTransports of one process, in virtual time: with rates, latencies, and deaths. One
// thread.
//
// A rail between two ranks is a stream in each direction. Bytes leave at the rail's rate, arrive after its latency, and
// at most kPipeBytes of them wait for the rail, as in a socket. A rail with a burst is a token bucket: after a pause so
// many bytes leave at once. All ranks' pipes have buckets of their own. Rails can be reset (both ends notice), and can
// lose everything without anybody noticing, until they are healed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "transport/message/frame_stream.h"
#include "transport/message/rail_transport.h"

namespace trestle {

struct SimRailSpec {
  double rate = 0.1;  // bytes per nanosecond
  int64_t latency_ns = 20'000;
  double stated = 0;  // what the transports are told, bytes per second
  double burst = 0;   // bytes that pass at once after a pause, as through the bucket of a shaper
};

class SimRails final : public Clock {
 public:
  SimRails(std::vector<SimRailSpec> rails, int32_t ranks, uint64_t seed = 1, PeerRails::Options options = {});
  ~SimRails() override;

  int64_t now_ns() override { return now_ns_; }
  RailTransport& operator[](int32_t rank) { return *transports_[static_cast<size_t>(rank)]; }

  // Drives all ranks once, but for `frozen`. If nothing moved, time passes. An error of any rank ends it.
  Status step(int32_t frozen = -1);

  void set_rate(size_t rail, double rate) { specs_[rail].rate = rate; }
  // Everything that is under way is lost; both ends hear of it.
  void reset(size_t rail);
  void reset(size_t rail, int32_t a, int32_t b);  // between these two ranks alone
  // From now on nothing arrives, and no connection is made.
  void silence(size_t rail) { silent_[rail] = true; }
  // Silences the connections of one rank: the cable of its host.
  void silence(size_t rail, int32_t rank) { silent_ends_[rail].insert(rank); }
  // What was under way when it became silent stays lost, and so do the connections of then.
  void heal(size_t rail) {
    silent_[rail] = false;
    silent_ends_[rail].clear();
  }
  // What is under way between these two ranks was lost and is sent again: it comes so much later. Not twice in a row.
  void delay(size_t rail, int32_t a, int32_t b, int64_t by_ns);
  // As an interface that is down: both ends say why.
  void set_down(size_t rail, bool down) { down_[rail] = down; }
  // From now on attempts wait in line, as behind those to many other peers, until the line moves again.
  void stop_line(size_t rail, bool stopped) { stopped_[rail] = stopped; }
  uint64_t carried(size_t rail) const { return carried_[rail]; }

 private:
  class End;  // a rail of one rank
  friend class End;
  struct Chunk {
    std::vector<std::byte> bytes;
    int64_t leaves_ns;
    int64_t arrives_ns;
  };
  struct Pipe {
    std::deque<Chunk> chunks;
    int64_t free_ns = 0;
    size_t waiting(int64_t now_ns) const;
  };
  struct Connection {
    int32_t rank[2];  // the lower one first
    size_t rail = 0;
    int64_t made_ns = 0;
    bool attached[2] = {false, false};
    bool closed[2] = {false, false};
    bool reset = false;
    bool lossy = false;  // it was there when the rail was silent
    int64_t delayed_ns = INT64_MIN / 2;
    Pipe to[2];
  };
  std::shared_ptr<Connection> open(size_t rail, int32_t a, int32_t b);
  std::shared_ptr<Connection>& current(size_t rail, int32_t a, int32_t b);
  void pass_time();
  bool is_silent(size_t rail, int32_t a, int32_t b) const;

  std::vector<SimRailSpec> specs_;
  const int32_t ranks_;
  Rng rng_;
  int64_t now_ns_ = 1'000'000'000;
  std::vector<bool> silent_;
  std::vector<std::set<int32_t>> silent_ends_;  // by rail
  std::vector<bool> down_;
  std::vector<bool> stopped_;
  std::vector<uint64_t> carried_;
  std::vector<std::shared_ptr<Connection>> current_;  // by rail, a, b
  std::vector<std::unique_ptr<RailTransport>> transports_;
};

}  // namespace trestle
