// SimNetwork: links between simulated ranks, and the transports over them. They keep the contract of transport.h; time
// is virtual.
//
// Each rank has one outgoing link per dimension of the topology. A message starts when both sides have posted it and
// its sender's link is free. It takes bytes / bandwidth on the link and arrives one latency later. A free link takes
// the oldest operation first, in it the oldest phase of the agreed order, then the first step, then the first segment.
// All events of one instant happen, and the ranks react to them, before links choose. Seeded jitter delays arrivals and
// so reorders them. Faults slow down and end links. In a dimension with rails, the rails divide each message among
// themselves (sim/rail_links.h). Owned by the SimCluster; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/faults.h"
#include "sim/message_table.h"
#include "sim/virtual_clock.h"
#include "topology/topology.h"
#include "transport/transport.h"

namespace trestle {

inline constexpr uint8_t kNoSimResource = 0xff;

// One of several rails of a link.
struct SimRail {
  std::string name = {};
  uint64_t bandwidth_mbps = 1;  // 10^6 bit/s
  uint64_t latency_ns = 0;
  uint64_t most_jitter_ns = 0;  // beside that of SimFaults
  bool stated = true;           // ranks know the bandwidth; else they have to measure it
  uint64_t burst_bytes = 0;     // so many leave at once after a pause, as from the bucket of a shaper
};

struct SimLink {
  uint64_t latency_ns = 0;
  uint64_t bandwidth_mbps = 1;        // 10^6 bit/s
  uint64_t message_ns = 0;            // every message occupies the sender's link for this time more
  uint64_t reduce_mbps = 0;           // a message to be reduced occupies it more, at this speed; 0: takes no time
  uint8_t resource = kNoSimResource;  // of the sending rank; links with equal numbers share it
  uint64_t resource_ps_per_byte = 0;
  // Not empty: they carry the data, and bandwidth_mbps and latency_ns do not count.
  std::vector<SimRail> rails = {};
  uint64_t whole_bytes = 16 * 1024;  // a message up to this is not divided among rails
};

// What a rail has carried, summed over the ranks.
struct SimRailCount {
  uint64_t bytes = 0;        // handed to it, including those sent again and probes
  uint64_t again_bytes = 0;  // of them, those that were lost and went over other rails
  uint64_t busy_ps = 0;
  uint64_t losses = 0;  // how often ranks have lost it
};

// Send and arrival times of the messages of one phase of one operation, at one rank.
struct SimPhaseTimes {
  bool any = false;
  uint64_t first_posted_ps = 0;  // by the rank
  uint64_t last_arrival_ps = 0;  // at the rank, or at a peer that it sends to
};

class SimRailLinks;
class SimTransport;
class SimWorkQueue;

class SimNetwork {
 public:
  // links[d] belongs to dimension d. If two ranks differ in several dimensions, the outermost one's link is used.
  // data: false: requests complete, but buffers are never accessed.
  SimNetwork(const Topology& topology, std::vector<SimLink> links, const SimFaults& faults, bool data,
             VirtualClock& clock);
  ~SimNetwork();

  std::unique_ptr<Transport> make_transport(int32_t rank);
  // seniority[p] belongs to phase number p of the operation. Lower values go first. Default: the phase number.
  void set_seniority(uint64_t operation, std::vector<uint32_t> seniority);
  // Ranks that had an event since the last call.
  void take_awake(std::vector<int32_t>& ranks);
  // Lets free links choose, moves time to the next event, and lets all events of that instant happen. Returns false if
  // there is no event.
  bool step();

  // Sums over all ranks: bytes sent on the links of a dimension, and the time that these links were busy.
  uint64_t bytes_sent(uint8_t dimension) const { return bytes_sent_[dimension]; }
  uint64_t busy_ps(uint8_t dimension) const { return busy_ps_[dimension]; }
  uint64_t messages() const { return messages_sent_; }
  // Of the dimension's rails; as SimLink::rails.
  std::vector<SimRailCount> rail_counts(uint8_t dimension) const;
  // Of rank 0, by phase number.
  const std::vector<SimPhaseTimes>& phase_times(uint64_t operation) { return times_[operation]; }

 private:
  friend class SimRailLinks;
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
  enum class Kind : uint8_t { kLinkFree, kArrival, kLinkDeath, kWorkEnd, kRail };
  struct Event {
    uint64_t time_ps;
    uint64_t created;
    uint32_t what;  // link, message or rank; kRail: what SimRailLinks has made of it
    Kind kind;
    uint8_t rail_kind = 0;  // kRail
    bool operator>(const Event& other) const {
      return time_ps != other.time_ps ? time_ps > other.time_ps : created > other.created;
    }
  };

  void post(int32_t from, int32_t to, const MessageTag& tag, SendRequest* send, RecvRequest* recv);
  void released(RecvRequest& request);
  void wake(int32_t rank);
  uint64_t now_ps() const { return clock_.now_ps(); }
  void add_work_queue(int32_t rank, SimWorkQueue* queue) { work_queues_[static_cast<size_t>(rank)] = queue; }
  // The oldest work in the rank's queue ends at this time.
  void schedule_work(int32_t rank, uint64_t time_ps);
  void choose(uint32_t link);
  void let_choose(uint32_t link);
  void happen(const Event& event);
  // The whole message has arrived. copy: its data is not in the receiver's pieces yet.
  void arrive(uint32_t message, bool copy);
  // Every rank fails with this error.
  void fail(const Error& error);
  void note(const SimMessage& message, bool posted);
  // How long the sender's link of bandwidth `mbps` is busy with `bytes` of a message. first: they are its first bytes,
  // so the overhead of the message is added.
  uint64_t link_ps(const Link& link, const SimMessage& message, uint64_t bytes, uint64_t mbps, bool first) const;
  // When `bytes` of a message have left the rank. The link itself is done with them at `left_ps`; a resource that it
  // shares with other links may take longer.
  uint64_t leave_ps(const SimMessage& message, uint64_t bytes, uint64_t left_ps);
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
  std::unique_ptr<SimRailLinks> rails_;     // null: no dimension has rails
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
