// NeighbourConnector: the state of connect_neighbours(). Private to neighbours.cpp and neighbours_failure.cpp.
//
// Lives for one call, on its thread. Outgoing connections are tried again until the limit. Accepted ones are strangers
// until they have proved to be a rank that is awaited.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/neighbours.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"

namespace trestle {

class NeighbourConnector {
 public:
  NeighbourConnector(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit)
      : config_(config), meeting_(meeting), limit_(limit), steps_(dissemination_steps(config.nranks)) {}

  Result<Neighbours> run();

 private:
  enum class Stage : uint8_t { kIdle, kConnecting, kHandshake, kDone };
  struct Attempt {
    explicit Attempt(int step) : step(step) {}
    int step;  // of an outgoing connection; -1: accepted
    Stage stage = Stage::kIdle;
    UniqueFd socket;
    SocketAddress from;  // of an accepted connection, as read while it was connected
    std::optional<HandshakeExchange> exchange;
    // Accepted: when it was accepted. Outgoing: when to try next.
    int64_t since_ns = 0;
    int64_t refused_ns = -1;            // first refusal of an outgoing connection
    std::vector<SocketAddress> places;  // of an outgoing connection: where the neighbour listens
    size_t place = 0;                   // the one that is tried
    uint32_t rounds = 0;                // how often all were
    int64_t begun_ns = 0;
    const Handshake& handshake() const { return exchange->handshake(); }
    bool proved() const { return exchange && handshake().peer_proved(); }
  };

  int32_t peer(int step, int direction) const {
    const int64_t at = config_.rank + direction * (int64_t{1} << step);
    return static_cast<int32_t>((at + config_.nranks) % config_.nranks);
  }
  Credentials credentials() const { return {meeting_.secret, meeting_.job, config_.rank}; }

  // neighbours.cpp
  Result<Neighbours> connect_all();
  bool complete() const;
  Status wait();
  Status move_out(Attempt& attempt, int64_t now);
  Status begin(Attempt& attempt, int64_t now);
  static bool is_silent(const Attempt& attempt, int64_t now);
  static void try_next(Attempt& attempt);
  static void strike_place(Attempt& attempt, int64_t now);
  Status retry(Attempt& attempt, int64_t now, const Error& error);
  void accept_some(int64_t now);
  void admit(UniqueFd socket, int64_t now);
  void move_in(Attempt& attempt, int64_t now);
  void refuse(Attempt& attempt, const std::string& reason);

  // neighbours_failure.cpp
  Status look_for_failure();
  Status failure_reported_by(const UniqueFd& socket, int32_t rank) const;
  Status watch_done() const;
  Status still_alive(const UniqueFd& socket, int32_t rank) const;
  Error cause_of(const Error& own);
  void tell_all(const Error& error);
  void tell(UniqueFd& socket, int32_t rank, const Error& error);
  std::vector<int32_t> absent() const;
  Error timed_out() const;

  const BootstrapConfig& config_;
  const Meeting& meeting_;
  const WaitLimit& limit_;
  const int steps_;
  std::vector<Attempt> out_;
  std::list<Attempt> in_;  // accepted connections that are not acknowledged yet
  Admission admission_;
  std::string accept_failure_;    // the last one; "": none
  std::vector<UniqueFd> proved_;  // acknowledged connections of rank - 2^k
  bool told_ = false;             // the error came from another rank
  OncePerKey refused_once_;
};

}  // namespace trestle
