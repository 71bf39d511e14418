// LinkMoves: makes the connections of a control mesh, and makes them anew, over another rail, when one has ended or its
// peer's host has become silent. So a lost rail is not taken for a dead rank.
//
// A link that never had a connection gets it from the rank before (Purpose::kControl): that rank tries the places where
// the other one listens in turn, with more patience each time that all were tried, so that the system gets the time to
// find out that a host is gone. A neighbour listens before any rank learns its address, so one that refuses for
// kRefusedNs has died. From the neighbour's hello on it may count on the connection, which is then never given up here.
//
// After that both ends connect, each to the other one's rails in turn. Rails that answered last come first, those
// without an answer last. If a connection has ended, its own rail is tried first: a rank whose process is gone refuses
// there, and each end learns that at once. After the handshake of every connection (Purpose::kControlMove) the side
// that has connected asks for a link and says how many frames of it have come. The other side ends its old connection,
// if it still has one, and answers with its own count. Then both go on.
//
//   connects                              accepts
//   handshake                      <--->
//   MoveRecord kAsk: link, number, came  ---->
//                                  <----  kTaken: number, came | kYield | kGone
//
// If both ask at the same time, the connection of the lower rank counts. While that rank awaits its own answer, it
// answers kYield to the other one; the higher rank takes every connection. An attempt that its maker has given up may
// come late. So attempts are numbered, and a rank takes one only if its number is above those that it has taken.
//
// A rank is dead when a rail refuses the connection and no other rail answers: a process that lives listens at all its
// rails. A firewall may refuse connections, too. So a refusal counts only from a rail over which the two ranks have had
// a connection. After such a refusal nothing waits for the rails that were silent before. A rank is lost when no rail
// has answered for give_up_ns, and each was tried. A rail answers when a connection comes about. The kernel of a
// stopped process still accepts connections, so a stopped process is not lost, however long it says nothing.
//
// Strangers at the listeners are bounded in number and time, as everywhere (transport/auth/strangers.h).
//
// Owned by the mesh and used under its mutex. Nothing blocks. The mesh calls tend() when its epoll reports kKey, and at
// next_due_ns().
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control_mesh/control_rails.h"
#include "control_mesh/move_record.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"
#include "transport/socket/socket.h"

namespace trestle {

class LinkMoves {
 public:
  static constexpr uint64_t kKey = UINT64_MAX;  // of its descriptors in the mesh's epoll
  static constexpr int64_t kStrangerNs = 5'000'000'000;

  // From where to where a link has moved.
  struct Move {
    std::string from;
    std::string to;
    std::string why;
  };
  // The mesh, as LinkMoves sees it. `link`: a place in the mesh's list.
  class Links {
   public:
    virtual ~Links() = default;
    // Ends the link's connection, if it has one: from now on it is away. Returns how many frames of the peer have come.
    virtual uint64_t part(size_t link) = 0;
    // The link has a new connection. The peer has got `came` frames. move.from is empty: it is the first one. False: it
    // cannot be continued.
    virtual bool resume(size_t link, UniqueFd socket, uint64_t came, const Move& move) = 0;
    // The link gets no connection any more. `what`: "died: ...", "is lost: ..." or "cannot be reached: ...", to follow
    // the peer's name.
    virtual void give_up(size_t link, const std::string& what, Code code) = 0;
  };
  // One link, by its place: to rank + 2^step (out) or rank - 2^step. fd: its present connection; -1: it has none.
  // made: it had one.
  struct Name {
    int32_t peer = 0;
    bool out = false;
    uint8_t step = 0;
    int fd = -1;
    bool made = true;
  };
  struct Options {
    int32_t rank = 0;
    int epoll_fd = -1;
    int64_t give_up_ns = 5'000'000'000;
    int64_t silence_ns = 0;             // how long a rail may acknowledge nothing while first connections are made
    int64_t stranger_ns = kStrangerNs;  // how long a stranger may prove nothing
  };
  LinkMoves(Links& links, std::unique_ptr<ControlRails> rails, const std::vector<Name>& names, const Options& options);
  LinkMoves(const LinkMoves&) = delete;
  LinkMoves& operator=(const LinkMoves&) = delete;

  // Watches the listeners. Once, before anything else.
  Status listen();
  // Whether the link may get another connection.
  bool can_move(size_t link) const { return ends_[link].ways.size() > 1; }
  // The link is away: its connection has ended, or was ended, for this reason. heard_ns: when something last came over
  // it; now_ns: when it ended.
  void begin(size_t link, const std::string& why, int64_t heard_ns, int64_t now_ns);
  // The link has ended for good.
  void forget(size_t link);
  // A host has answered within that time to the attempts to reach the peer of a link that is away.
  bool answers(size_t link, int64_t within_ns, int64_t now_ns) const;
  // Why connections could not be accepted; "": all could.
  const std::string& accept_failure() const { return accept_failure_; }
  // Sends these bytes as the last ones to peers that may count on a connection which no link has yet.
  void tell(const std::string& bytes);
  // Goes on with all attempts and strangers.
  void tend(int64_t now_ns);
  int64_t next_due_ns() const;

 private:
  enum class Stage : uint8_t { kIdle, kConnecting, kHandshake, kAnswer };
  // In the order in which ways are tried.
  enum class Last : uint8_t { kAnswer, kUnknown, kSilence };
  // One rail to a peer, and what happened to it last.
  struct Way {
    size_t rail = 0;
    Last last = Last::kUnknown;
    std::string what;
    int64_t at_ns = 0;
    bool proven = false;  // a connection with the peer was there once
  };
  // This side's end of a link.
  struct End {
    Name name;
    std::vector<Way> ways;    // as they are tried in this round
    std::vector<Way> places;  // for the first connection, where `rail` counts the places
    std::string on;           // the rail of the present or last connection
    bool away = false;
    bool gone = false;   // ended for good
    uint32_t taken = 0;  // the highest number of a connection that was taken
    uint32_t asked = 0;  // the highest number that this side has asked with

    // While it is away
    std::string why;
    int64_t answered_ns = 0;         // when a rail answered last
    bool all_tried = false;          // each rail was tried since then
    size_t way = 0;                  // the way that is tried, or is next; those before it were tried in this round
    uint32_t rounds = 0;             // in which all places were tried
    int64_t failed_ns = -1;          // since when places refuse
    Code code = Code::kRemoteError;  // with which it is given up
    size_t refused = 0;
    bool answered = false;
    int64_t next_ns = 0;
    int64_t pause_ns = 0;     // after the next round
    int64_t patience_ns = 0;  // for the next handshake
    // The attempt
    Stage stage = Stage::kIdle;
    int64_t until_ns = 0;
    UniqueFd socket;
    std::optional<HandshakeExchange> exchange;
    std::string answer;  // what has come of it

    std::vector<Way>& tried() { return name.made ? ways : places; }
    // Its peer makes the first connection.
    bool dials() const { return away && (name.made || name.out); }
    void begin_round();
    bool is_round_over();
    void be_patient(int64_t now_ns);
  };
  struct Stranger {
    UniqueFd socket;
    SocketAddress from;
    size_t rail = 0;
    int64_t since_ns = 0;
    HandshakeExchange exchange;
    std::string ask;
    // It has proved itself for the first connection of a link.
    bool is_promised() const {
      return exchange.handshake().purpose() == Purpose::kControl && exchange.handshake().peer_proved();
    }
  };

  // link_moves.cpp
  void drive(size_t link, int64_t now_ns);
  bool step(size_t link, int64_t now_ns);
  bool dial(End& end, int64_t now_ns);
  TcpOptions while_meeting(bool can_move) const;
  bool step_connecting(End& end, int64_t now_ns);
  bool step_handshake(size_t link, int64_t now_ns);
  bool step_answer(size_t link, int64_t now_ns);
  void take_answer(size_t link, const MoveRecord& answer, int64_t now_ns);
  bool failed(End& end, const std::string& what, bool refused, int64_t now_ns);
  bool handshake_failed(End& end, const Error& error, int64_t now_ns);
  void end_round(size_t link, int64_t now_ns);
  void drop_attempt(End& end);
  void count_own_absence(int64_t now_ns);
  bool watch(int fd, uint32_t events);
  void settle(size_t link, UniqueFd socket, size_t rail, uint64_t came, const std::string& why);
  void settle_first(size_t link, UniqueFd socket);
  void give_up(size_t link, const std::string& what);
  void prove(int32_t peer, size_t rail);
  bool not_connected(End& end, const Error& error, int64_t now_ns);
  std::string story(const End& end, int64_t now_ns) const;

  // link_moves_accept.cpp
  void accept_some(int64_t now_ns);
  void admit(size_t rail, UniqueFd socket, int64_t now_ns);
  bool drive_stranger(Stranger& stranger, int64_t now_ns);
  void seat(Stranger& stranger);
  void judge(Stranger& stranger, int64_t now_ns);
  std::optional<size_t> find(int32_t peer, const MoveRecord& ask) const;
  void take(size_t link, Stranger& stranger, const MoveRecord& ask, int64_t now_ns);
  void refuse(const Stranger& stranger, const std::string& reason);

  Links& links_;
  const std::unique_ptr<ControlRails> rails_;
  const Options options_;
  std::vector<End> ends_;              // by link
  std::list<Stranger> strangers_;      // the oldest first
  std::vector<Admission> admissions_;  // by rail
  OncePerKey refused_once_;
  std::string accept_failure_;
  int64_t tended_ns_ = 0;
  int64_t expected_ns_ = 0;  // when tend() was to be called again
};

}  // namespace trestle
