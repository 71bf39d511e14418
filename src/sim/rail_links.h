// SimRailLinks: the outgoing links of simulated ranks in dimensions that have rails, one by one.
//
// As in the message layer (transport/message/peer_rails.h) a rank measures the goodput of each rail to each peer, and
// the same functions decide what a rail takes (transport/message/rail_choice.h). A rail of a rank sends what it was
// given in that order. It can take more once less than a socket's buffer waits. A fragment is acknowledged one latency
// after it has arrived. A rail has the same state for all ranks.
//
// A rail that dies loses everything from then on. Ranks notice an interface that is down at their next look, and a
// silent loss after SimFaults::rail_silence_ns. Then what has not arrived goes over other rails. If the rail heals
// before that, what was lost is sent again over the rail itself, as TCP does. If later, a connection is made at the
// next attempt. A new rate holds for what is given to the rail from then on.
//
// Owned by a SimNetwork, which schedules its events; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "sim/network.h"
#include "transport/message/goodput.h"
#include "transport/message/probe_budget.h"
#include "transport/message/rail_choice.h"

namespace trestle {

class SimRailLinks {
  using Waiting = SimNetwork::Waiting;

 public:
  explicit SimRailLinks(SimNetwork& network);
  SimRailLinks(const SimRailLinks&) = delete;
  SimRailLinks& operator=(const SimRailLinks&) = delete;

  // Both sides have posted the message.
  void post(uint32_t link, const Waiting& waiting);
  // Rails of the link that can write take what they should.
  void choose(uint32_t link);
  // An event that this object has scheduled.
  void happen(uint8_t kind, uint32_t what);
  std::vector<SimRailCount> counts(uint8_t dimension) const;

 private:
  // `what` is a fragment, a fault, or a rail (rail_number()).
  enum class Kind : uint8_t { kLeft, kArrival, kAcknowledged, kFault, kNoticed, kConnected };
  struct Way {  // to one peer over one rail
    Goodput goodput;
    int64_t used_ns = 0;
    bool owes_probe = false;
    bool unmeasured = true;  // its first row of probes has not begun
    int64_t probe_pause_ns = kFirstProbePauseNs;
    uint64_t probed_at = 0;  // Peer::given_bytes at the last probe
  };
  struct Part {
    uint32_t message = 0;
    uint64_t at = 0;
    uint64_t length = 0;
  };
  struct Peer {
    std::vector<Way> ways;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
    std::deque<Part> again;
    uint64_t waiting_bytes = 0;  // with those of `again`
    int64_t carried_ns = 0;      // when any rail was given a part last
    uint64_t given_bytes = 0;    // of all parts
    bool idle() const { return waiting.empty() && again.empty(); }
  };
  struct Fragment {
    Part part;
    uint64_t created = 0;
    uint32_t link = 0;
    uint8_t rail = 0;
    bool used = false;  // else it is free
    bool probe = false;
    bool arrived = false;
    bool given_up = false;  // only its event remains
    Peer* peer = nullptr;
    Goodput::Mark mark;
  };
  struct Outlet {             // a rail of one rank
    uint64_t free_ps = 0;     // when it would be without a burst
    uint64_t arrival_ps = 0;  // of the last fragment
    uint64_t backlog = 0;     // bytes that have not left
  };
  struct Link {
    std::vector<Outlet> outlets;
    std::vector<ProbeBudget> probes;  // by rail
    std::map<int32_t, Peer> peers;
  };
  struct Rail {
    bool down = false;
    bool drops = false;
    bool lost = false;  // the ranks know it
    uint64_t rate_ppm = 1'000'000;
    uint64_t died_ps = 0;
    uint64_t lost_ps = 0;
    uint64_t noticed_ps = 0;        // when the ranks will notice that it is dead; 0: they will not
    uint64_t connected_ps = 0;      // when it will have a connection again; 0: it will not
    std::vector<uint32_t> stalled;  // fragments whose loss, or whose acknowledgement's, is not noticed yet
    SimRailCount count;
    bool dead() const { return down || drops; }
  };

  uint64_t now_ps() const { return network_.now_ps(); }
  int64_t now_ns() const { return static_cast<int64_t>(network_.now_ps() / 1000); }
  uint8_t dimension_of(uint32_t link) const { return static_cast<uint8_t>(link % network_.specs_.size()); }
  const SimRail& spec_of(uint8_t dimension, uint8_t rail) const { return network_.specs_[dimension].rails[rail]; }
  Rail& rail_of(const Fragment& fragment) { return rails_[dimension_of(fragment.link)][fragment.rail]; }
  static uint32_t rail_number(uint8_t dimension, uint8_t rail) { return dimension * 256u + rail; }
  uint64_t rate_mbps(uint8_t dimension, uint8_t rail) const;
  void schedule(uint64_t time_ps, Kind kind, uint32_t what);
  void wake(uint8_t dimension);

  // ---- what goes over which rail (rail_links.cpp)
  Peer& peer_of(uint32_t link, int32_t rank);
  RailLoad load_of(uint8_t dimension, const Peer& peer, uint8_t rail) const;
  WaitingBytes waiting_of(const Peer& peer);
  uint64_t may_take(uint8_t dimension, const Peer& peer, uint8_t rail);
  bool goes_before(const Peer& peer, const Peer& other) const;
  bool feed(uint32_t link, uint8_t rail);
  bool may_begin_row(uint32_t link, uint8_t rail, const Peer& peer);
  bool owes_probe(uint32_t link, uint8_t rail, Peer& peer);
  bool probe_idle(uint32_t link, uint8_t rail);
  Part take(uint8_t dimension, Peer& peer, uint64_t most);
  void give(uint32_t link, uint8_t rail, Peer& peer, const Part& part, bool probe);
  uint64_t left_ps(const Fragment& fragment, uint64_t start_ps);
  void launch(uint32_t which, bool first);
  void left(Fragment& fragment);
  void arrive(uint32_t which);
  void acknowledged(uint32_t which);
  void bring(const Part& part);
  uint32_t new_fragment();
  void release(uint32_t which);

  // ---- what happens to rails (rail_life.cpp)
  void change(const SimRailFault& fault);
  void die(uint8_t dimension, uint8_t rail, int64_t noticed_after_ns);
  void heal(uint8_t dimension, uint8_t rail);
  void lose(uint8_t dimension, uint8_t rail);
  void give_up(uint8_t dimension, uint8_t rail);
  void connect(uint8_t dimension, uint8_t rail);
  Error last_lost(uint8_t dimension) const;

  SimNetwork& network_;
  std::vector<std::vector<Rail>> rails_;  // [dimension][rail]
  std::vector<uint64_t> sum_mbps_;        // of the rails of a dimension
  std::vector<Link> links_;               // as the network's
  std::deque<Fragment> fragments_;
  std::vector<uint32_t> free_fragments_;
  uint64_t created_ = 0;
  std::vector<RailLoad> loads_;  // kept for its capacity
};

}  // namespace trestle
