// SimNetwork: links between simulated ranks, and the transports over them: the real contract of transport.h over a
// virtual clock.
//
// Each rank has one link out per dimension of the topology. A message starts when both sides have posted it, waits
// until its sender's link is free (of the oldest operation the oldest phase in its agreed order, of that the first
// step, of that the first segment), takes bytes / bandwidth of that link, and arrives one latency later. What becomes
// free or arrives at an instant is looked at together, and ranks act on it, before links choose. Seeded jitter delays
// arrivals and so reorders them; faults slow down and end links. Owned by the SimCluster; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "base/rng.h"
#include "sim/faults.h"
#include "sim/message_table.h"
#include "sim/virtual_clock.h"
#include "topology/topology.h"
#include "transport/transport.h"

namespace trestle {

inline constexpr uint8_t kNoSimResource = 0xff;

struct SimLink {
  uint64_t latency_ns = 0;
  uint64_t bandwidth_mbps = 1;        // 10^6 bit/s
  uint64_t message_ns = 0;            // the sender's link is held for so long by every message besides
  uint64_t reduce_mbps = 0;           // and by what its receiver adds up, at this speed; 0: in no time
  uint8_t resource = kNoSimResource;  // of the sending rank; links of equal numbers share it
  uint64_t resource_ps_per_byte = 0;
};

// When the messages of one phase of one operation left and reached one rank.
struct SimPhaseTimes {
  bool any = false;
  uint64_t first_posted_ps = 0;  // by the rank
  uint64_t last_arrival_ps = 0;  // at the rank, or at a peer that it sends to
};

class SimTransport;
class SimWorkQueue;

class SimNetwork {
 public:
  // links[d]: of dimension d; a message between ranks that differ in several dimensions takes the outermost one's.
  // data: false moves no bytes: requests are completed as if, buffers are never touched.
  SimNetwork(const Topology& topology, std::vector<SimLink> links, const SimFaults& faults, bool data,
             VirtualClock& clock);

  std::unique_ptr<Transport> make_transport(int32_t rank);
  // seniority[p] of phase number p of an operation: lower ones go first. Without it phase numbers decide.
  void set_seniority(uint64_t operation, std::vector<uint32_t> seniority);
  // Ranks to which something has happened since the last call.
  void take_awake(std::vector<int32_t>& ranks);
  // Lets free links choose, moves time to the next event and lets all of that instant happen. False: nothing is going
  // to happen.
  bool step();

  // Bytes that left ranks over links of a dimension, and for how long these were busy, all ranks together.
  uint64_t bytes_sent(uint8_t dimension) const { return bytes_sent_[dimension]; }
  uint64_t busy_ps(uint8_t dimension) const { return busy_ps_[dimension]; }
  uint64_t messages() const { return messages_sent_; }
  // Of rank 0, by phase number.
  const std::vector<SimPhaseTimes>& phase_times(uint64_t operation) { return times_[operation]; }

 private:
  friend class SimTransport;
  friend class SimWorkQueue;
  struct Waiting {
    uint64_t operation;
    uint64_t order;  // seniority of the phase, then step
    uint64_t offset;
    uint64_t created;
    uint32_t message;
    bool operator>(const Waiting& other) const;
  };
  struct Link {
    bool busy = false;
    bool choosing = false;  // in free_links_
    bool dead = false;
    uint64_t percent = 100;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  };
  enum class Kind : uint8_t { kLinkFree, kArrival, kLinkDeath, kWorkEnd };
  struct Event {
    uint64_t time_ps;
    uint64_t created;
    uint32_t what;  // link, message or rank
    Kind kind;
    bool operator>(const Event& other) const {
      return time_ps != other.time_ps ? time_ps > other.time_ps : created > other.created;
    }
  };

  void post(int32_t from, int32_t to, const MessageTag& tag, SendRequest* send, RecvRequest* recv);
  void released(RecvRequest& request);
  void wake(int32_t rank);
  uint64_t now_ps() const { return clock_.now_ps(); }
  void add_work_queue(int32_t rank, SimWorkQueue* queue) { work_queues_[static_cast<size_t>(rank)] = queue; }
  // The oldest work of the rank's queue ends at that time.
  void schedule_work(int32_t rank, uint64_t time_ps);
  void choose(uint32_t link);
  void let_choose(uint32_t link);
  void happen(const Event& event);
  void arrive(uint32_t message);
  void note(const SimMessage& message, bool posted);
  uint64_t link_ps(const Link& link, const SimLink& spec, const SimMessage& message) const;
  uint8_t dimension_between(int32_t a, int32_t b) const;
  uint32_t link_index(int32_t rank, uint8_t dimension) const {
    return static_cast<uint32_t>(static_cast<size_t>(rank) * specs_.size() + dimension);
  }

  const Topology topology_;
  const std::vector<SimLink> specs_;
  const SimFaults faults_;
  const bool data_;
  VirtualClock& clock_;
  Rng rng_;
  std::vector<Link> links_;                 // [rank][dimension]
  std::vector<SimTransport*> transports_;   // by rank; null: not made, or gone
  std::vector<SimWorkQueue*> work_queues_;  // by rank; null: none, or gone
  std::vector<uint32_t> free_links_;
  std::vector<std::vector<uint64_t>> resource_free_ps_;  // [rank][resource]
  MessageTable messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t created_ = 0;
  std::vector<bool> awake_;
  std::vector<int32_t> awake_list_;
  std::map<uint64_t, std::vector<uint32_t>> seniority_;
  std::map<uint64_t, std::vector<SimPhaseTimes>> times_;
  std::vector<uint64_t> bytes_sent_;
  std::vector<uint64_t> busy_ps_;
  uint64_t messages_sent_ = 0;
};

}  // namespace trestle
