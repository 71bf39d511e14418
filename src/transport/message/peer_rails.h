// PeerRails: several rails between this rank and one peer: what goes over which, what has arrived, and what happens
// when a rail fails. A pair of ranks with one rail has none of this: its PeerProtocol is asked directly.
//
// Counting. Both ends count the frames of every connection, except kAck and goodbyes, in the order in which they were
// handed to the rail. The receiver acknowledges with kAck how many have come, over the rail itself. The sender keeps
// every header and fragment until it is acknowledged.
//
// A rail that fails. A rank that notices the end of a connection, or decides to end it, stops reading it. It says over
// another rail how many frames of it have come (kRailEnd). The other side does the same. When both have said so, each
// knows exactly which of its frames did not come, and sends these again over the other rails. So nothing comes twice,
// and a late fragment never overwrites memory that is used for something else.
//
// Silence. Only the rank with the lower number ends a rail because nothing is acknowledged over it. The other one asks
// for that, over another rail (kRailSilent). If both decided, each could end the rail that the other one goes on with,
// and no rail would be left to a healthy pair. When one pair notices silence, the others look too (rail_suspicion.h).
//
// Shares. The waiting data is divided so that all rails end together (rail_choice.h), by measured goodput (goodput.h).
// Messages that stay whole, and headers, take the rail over which they arrive first. A rail has about 20 ms of data
// under way at most, so that a rail that becomes slow delays little. A rail of unknown goodput carries nothing but
// probes while the goodput of another one is known. Probes go one after the other until one of them says something:
// the first may pass through a shaper's bucket at once. How many such rows begin is bounded for all peers together
// (probe_budget.h).
//
// Owned by a RailTransport, used under the rank's progress lock. `rail` counts the rails that both ranks have, in an
// order that both know. Times are those of the transport's clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/message/goodput.h"
#include "transport/message/peer_protocol.h"
#include "transport/message/probe_budget.h"
#include "transport/message/rail_book.h"
#include "transport/message/rail_choice.h"
#include "transport/message/rail_suspicion.h"
#include "transport/rail.h"

namespace trestle {

class PeerRails {
 public:
  struct Given {
    double rate = 0;                     // bytes per second that the rail is said to have; 0: not known
    RailRecord* record = nullptr;        // where it is counted; outlives this object
    ProbeBudget* probes = nullptr;       // of the rail; outlives this object
    RailSuspicion* suspicion = nullptr;  // of the rail; outlives this object
  };
  struct Options {
    // A rail without acknowledgements has failed if others answer. After this time all pairs of ranks that use the rail
    // have left it, though they notice at different times.
    int64_t silence_ns = 3'000'000'000;
    bool ends_silent_rails = true;  // else it asks the peer: set by the RailTransport
  };
  // What a PeerRails asks of the rails themselves.
  struct Hooks {
    std::function<void(size_t rail)> drop;     // as Rail::drop
    std::function<Status(size_t rail)> reach;  // as Rail::reach
    std::function<bool(size_t rail)> in_line;  // as Rail::in_line
    // A rail that was up is not any more, or one that was down is up again. `why` it is, or was, down.
    std::function<void(size_t rail, bool up, const std::string& why)> changed;
  };
  PeerRails(PeerProtocol& protocol, BufferPool& pool, std::span<const Given> rails, const Options& options,
            Hooks hooks);
  ~PeerRails();
  PeerRails(const PeerRails&) = delete;
  PeerRails& operator=(const PeerRails&) = delete;

  size_t count() const { return ways_.size(); }

  // ---- Output: as the events of rail.h
  bool has_output(size_t rail) const;
  bool next_control(size_t rail, Frame& header, int64_t now_ns);
  bool next_fragment(size_t rail, Fragment& fragment, int64_t now_ns);
  // A fragment has left; they leave in the order of next_fragment().
  void written(size_t rail) { ++ways_[rail].written; }
  // From now on the goodbye may go before everything is acknowledged. On each rail it still comes last.
  void hurry() { hurry_ = true; }
  // Nothing is under way that the peer has not acknowledged.
  bool all_arrived() const;
  // The rail over which a message of `bytes` would arrive first; count() if no rail is connected.
  size_t fastest(uint64_t bytes) const;

  // ---- Input
  Result<std::span<const Piece>> begin(size_t rail, const Frame& header, int64_t now_ns);
  Status end(size_t rail);

  // ---- Life of rails
  void connected(size_t rail, int64_t now_ns);
  // The connection has ended, or could not be made. False: no other rail is left.
  bool lost(size_t rail, const std::string& why, int64_t now_ns);
  // The connection has ended after a goodbye: no other one follows.
  void closed(size_t rail, int64_t now_ns);
  // RailEvents::hold_bytes.
  uint64_t hold_bytes(size_t rail) const;
  bool is_up(size_t rail) const { return ways_[rail].state == RailState::kUp; }
  // The two ranks have not told each other yet how the last connection ended.
  bool unsettled(size_t rail) const { return ways_[rail].state == RailState::kEnding || ways_[rail].owes_end; }
  // Tries rails again, and gives up those that have been silent for too long. False: no rail is left.
  bool tick(int64_t now_ns);
  // Whether tick() has something to watch.
  bool needs_ticks() const;
  // What happened to each rail and when, for the sentence when the last one is lost.
  std::string story(int64_t now_ns) const;

 private:
  struct Sent {
    Fragment fragment;          // of a header without payload only the header
    bool control = false;       // header.type has no payload
    std::byte* copy = nullptr;  // from the pool, of messages that stay whole: their request is done already
    ConstPiece piece;           // the copy
    Goodput::Mark mark;
    uint64_t order = 0;  // of the fragments given to the rail, from 1
    bool whole() const { return fragment.header.type == FrameType::kEager; }
  };
  struct Way {
    RailState state = RailState::kConnecting;  // also while a rail that was down is tried again
    RailRecord* record = nullptr;
    ProbeBudget* probes = nullptr;
    RailSuspicion* suspicion = nullptr;
    bool was_up = false;
    uint32_t epoch = 0;  // connections so far; the same on both sides
    Goodput goodput;
    double stated_rate = 0;  // bytes per nanosecond

    std::deque<Sent> sent;   // not acknowledged
    uint64_t confirmed = 0;  // frames of this connection that the peer has acknowledged
    uint64_t received = 0;   // frames of this connection that have come whole
    uint64_t told = 0;       // of them, acknowledged
    uint64_t given = 0;      // fragments given to the rail
    uint64_t written = 0;    // of them, written
    Frame incoming;          // the last header

    bool owes_probe = false;
    bool owes_question = false;  // a probe that measures nothing: whether the rail answers
    bool unmeasured = false;     // the connection is new; its first row of probes has not begun
    uint64_t probed_at = 0;      // given_bytes_ when it was given its last probe
    bool owes_end = false;
    bool owes_request = false;            // asks the peer to end the connection
    int64_t requested_ns = 0;             // when it was asked last; 0: not since something was acknowledged
    std::optional<uint64_t> peers_count;  // of the peer's kRailEnd, until it is settled
    int64_t answered_ns = 0;              // when something was acknowledged last; 0: not over this connection
    int64_t confirmed_ns = 0;             // as answered_ns, or when it was given something while nothing was under way
    int64_t used_ns = 0;                  // when it carried a fragment that measures, or a probe, last
    int64_t probe_pause_ns = 0;           // from then to the next probe
    int64_t doubted_ns = 0;               // since when others have answered and it has not
    int64_t asked_ns = 0;                 // when it was asked last because another pair doubted it, or was connected
    int64_t retry_ns = 0;                 // when the next attempt begins; of one that is made: when it is given up
    bool may_be_in_line = false;          // the attempt may not have begun
    int64_t backoff_ns = 0;
    std::string why;
  };

  void tell_load(const Way& way) const;
  RailLoad load_of(const Way& way) const;
  void update_loads() const;
  uint64_t waiting_bytes() const { return again_bytes_ + protocol_.ready_bytes(); }
  uint64_t may_take(size_t rail) const;
  bool carries_control(size_t rail) const;
  bool next_own_control(Frame& header);
  bool owes_request(size_t over) const;
  bool next_request(size_t over, Frame& header);
  void remember_control(Way& way, const Frame& header, int64_t now_ns);
  bool take_probe(size_t rail, Fragment& fragment, int64_t now_ns);
  void take_again(uint64_t most, Sent& taken);
  void keep_copy(Sent& taken);
  void give(Way& way, Sent&& taken, Fragment& fragment, int64_t now_ns);
  Status confirm(Way& way, uint64_t count, int64_t now_ns);
  Status peer_ended(size_t rail, const Frame& header, int64_t now_ns);
  Status peer_requests_end(size_t rail, const Frame& header, int64_t now_ns);
  bool is_unseen(const Way& way, const Frame& header) const;
  void see(Way& way, int64_t now_ns);
  std::string silence_text(const Way& way, int64_t now_ns) const;
  int64_t unanswered_since(const Way& way) const;
  void end_here(size_t rail, const std::string& why, int64_t now_ns);
  Status settle(Way& way, int64_t now_ns);
  void send_again(Way& way);
  bool goodbye_may_go() const;
  void begin_counts(Way& way);
  void expect_first_connection(size_t rail, int64_t now_ns);
  bool others_up(size_t rail) const;
  bool others_carry(size_t rail) const;
  bool silent(size_t rail, int64_t now_ns);
  int64_t ask_others(size_t rail, int64_t now_ns);
  void ask_if_doubted(Way& way, int64_t now_ns);
  bool judge(size_t rail, int64_t now_ns);
  bool may_begin_row(const Way& way, int64_t now_ns) const;
  void measure_new(int64_t now_ns);
  void watch_idle(size_t rail, int64_t now_ns);
  void try_again(size_t rail, int64_t now_ns);
  void begin_limit(size_t rail, int64_t now_ns);

  PeerProtocol& protocol_;
  BufferPool& pool_;
  const Options options_;
  const Hooks hooks_;
  std::vector<Way> ways_;
  mutable std::vector<RailLoad> loads_;  // kept for its capacity
  std::deque<Frame> again_control_;
  std::deque<Sent> again_;
  uint64_t again_bytes_ = 0;
  bool hurry_ = false;
  int64_t ticked_ns_ = 0;
  int64_t now_ns_ = 0;        // at the last look at a rail
  int64_t carried_ns_ = 0;    // when any rail was given a fragment last; probes do not count
  uint64_t given_bytes_ = 0;  // of such fragments
};

}  // namespace trestle
