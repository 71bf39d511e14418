// NeighbourConnector: the state of connect_neighbours(). Private to neighbours*.cpp.
//
// Lives for one call, on its thread. Outgoing connections are tried again until the limit. Accepted ones are strangers
// until they have proved to be a rank that is awaited.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/wait_marks.h"
#include "control_mesh/dissemination.h"
#include "control_mesh/move_record.h"
#include "rendezvous/neighbours.h"
#include "rendezvous/rank_info.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"

namespace trestle {

inline std::string own_name(const BootstrapConfig& config) {
  return config.names.empty() ? own_rank_name(config.rank) : config.names[static_cast<size_t>(config.rank)];
}

class NeighbourConnector {
 public:
  NeighbourConnector(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit)
      : config_(config), meeting_(meeting), limit_(limit), steps_(dissemination_steps(config.nranks)) {}

  Result<Neighbours> run();

 private:
  // kAwaited: the neighbour makes the first connection. kAnswer: a connection was asked to carry the link.
  enum class Stage : uint8_t { kAwaited, kIdle, kConnecting, kHandshake, kAnswer, kDone };
  struct Link {
    int32_t peer = 0;
    bool out = false;  // to rank + 2^step; else to rank - 2^step
    uint8_t step = 0;
    std::vector<SocketAddress> places;  // where the neighbour listens
    bool moves = false;                 // there are several rails: a connection that is lost is made anew
    bool made = false;                  // the first connection was made
    Stage stage = Stage::kIdle;
    UniqueFd socket;
    std::optional<HandshakeExchange> exchange;  // of a connection that is made here
    int64_t next_ns = 0;                        // when to try next
    int64_t refused_ns = -1;                    // first refusal
    int64_t answered_ns = 0;                    // when its host last answered, or when the connection was lost
    size_t place = 0;                           // the one that is tried
    uint32_t rounds = 0;                        // how often all places were tried
    int64_t begun_ns = 0;
    uint32_t asked = 0;  // the highest number of a MoveRecord that was sent
    uint32_t taken = 0;  // the highest one of a connection that was taken
    std::string answer;  // the part of the answer that has come
    bool done() const { return stage == Stage::kDone; }
  };
  struct Stranger {
    UniqueFd socket;
    SocketAddress from;  // as read while it was connected
    int64_t since_ns;
    HandshakeExchange exchange;
    std::string ask;
    const Handshake& handshake() const { return exchange.handshake(); }
  };

  Credentials credentials() const { return {meeting_.secret, meeting_.job, config_.rank}; }
  const std::string& text_of(const Link& link) const;

  // neighbours.cpp
  Status make_links();
  Result<Neighbours> connect_all();
  bool complete() const;
  Status wait();
  Status drive(Link& link, int64_t now);
  Status check_host(const Link& link, int64_t now) const;
  Status begin(Link& link, int64_t now);
  Status finish_handshake(Link& link, int64_t now);
  Status read_answer(Link& link, int64_t now);
  void lose(Link& link, const std::string& why, int64_t now);
  static bool is_silent(const Link& link, int64_t now);
  static void drop_attempt(Link& link);
  static void try_next(Link& link);
  static void strike_place(Link& link, int64_t now);
  Status retry(Link& link, int64_t now, const Error& error);
  TcpOptions while_meeting(const Link& link) const;

  // neighbours_accept.cpp
  void accept_some(int64_t now);
  void admit(UniqueFd socket, int64_t now);
  bool drive_stranger(Stranger& stranger, int64_t now);
  Link* find(int32_t peer, bool out, uint8_t step);
  void seat(Stranger& stranger);
  void judge(Stranger& stranger, int64_t now);
  void take(Link& link, Stranger& stranger, uint32_t number, int64_t now);
  void refuse(const Stranger& stranger, const std::string& reason);

  // neighbours_failure.cpp
  Status look_for_failure();
  Status failure_reported_by(const Link& link) const;
  Status watch_done(int64_t now);
  static std::string end_of(const UniqueFd& socket);
  Error ended(const Link& link) const;
  Error cause_of(const Error& own);
  void tell_all(const Error& error);
  void tell(UniqueFd& socket, int32_t rank, const Error& error);
  std::vector<int32_t> absent() const;
  std::string names_of(const std::vector<int32_t>& ranks) const;
  void say_wait(int64_t now);
  Error timed_out() const;

  const BootstrapConfig& config_;
  const Meeting& meeting_;
  const WaitLimit& limit_;
  const int steps_;
  std::vector<Link> links_;  // in the order of mesh_neighbours()
  std::list<Stranger> strangers_;
  Admission admission_;
  std::string accept_failure_;  // the last one; "": none
  bool told_ = false;           // the error came from another rank
  OncePerKey refused_once_;
  WaitMarks marks_{monotonic_clock().now_ns()};
};

}  // namespace trestle
