// SimNetwork: links between simulated ranks, and the transports over them: the real contract of transport.h over a
// virtual clock.
//
// Each rank has one link out per dimension of the topology. A message starts when both sides have posted it, waits
// until its sender's link is free (the oldest operation and phase first), takes bytes / bandwidth of that link, and
// arrives one latency later. Seeded jitter delays arrivals and so reorders them. Data really moves. Owned by the
// SimCluster; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "sim/virtual_clock.h"
#include "topology/topology.h"
#include "transport/transport.h"

namespace trestle {

struct SimLink {
  uint64_t latency_ns = 0;
  uint64_t bandwidth_mbps = 1;  // 10^6 bit/s
};

struct SimFaults {
  uint64_t seed = 0;
  uint64_t most_jitter_ns = 0;  // each arrival is late by 0..this
};

class SimNetwork {
 public:
  // links[d]: of dimension d; a message between ranks that differ in several dimensions takes the outermost one's.
  SimNetwork(const Topology& topology, std::vector<SimLink> links, SimFaults faults, VirtualClock& clock);

  std::unique_ptr<Transport> make_transport(int32_t rank);
  // Moves time to the next event and lets it happen. False: nothing is going to happen.
  bool step();
  // Bytes that left ranks over links of a dimension.
  uint64_t bytes_sent(uint8_t dimension) const { return bytes_sent_[dimension]; }

 private:
  friend class SimTransport;
  struct Message {
    MessageTag tag;
    int32_t from = 0;
    int32_t to = 0;
    SendRequest* send = nullptr;
    RecvRequest* recv = nullptr;
  };
  struct Key {
    int32_t from, to;
    MessageTag tag;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return MessageTagHash()(key.tag) ^
             (static_cast<size_t>(key.from) << 32 | static_cast<uint32_t>(key.to)) * 0x9e3779b97f4a7c15ull;
    }
  };
  struct Link {
    bool busy = false;
    std::vector<Message*> waiting;
  };
  struct Happening {
    int64_t time_ns;
    uint64_t order;  // of creation: ties happen in this order
    std::function<void()> action;
    bool operator>(const Happening& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };

  void post(const Key& key, SendRequest* send, RecvRequest* recv);
  void start_next(int32_t rank, uint8_t dimension);
  void arrive(Message* message);
  void happen_at(int64_t time_ns, std::function<void()> action);
  uint8_t dimension_between(int32_t a, int32_t b) const;
  Link& link(int32_t rank, uint8_t dimension) { return links_[static_cast<size_t>(rank) * specs_.size() + dimension]; }

  const Topology topology_;
  const std::vector<SimLink> specs_;
  const SimFaults faults_;
  VirtualClock& clock_;
  Rng rng_;
  std::vector<Link> links_;  // [rank][dimension]
  std::unordered_map<Key, std::unique_ptr<Message>, KeyHash> open_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  uint64_t created_ = 0;
  std::vector<uint64_t> bytes_sent_;
};

}  // namespace trestle
