// RailTransport: messages over rails. It knows the requests, the protocols to the peers, and which rails lead to which
// peer; a rail knows connections.
//
// See transport.h for the contract, and rail.h for the division of work. To a peer that is reached over one rail,
// frames need no acknowledgement: what the rail has taken arrives, or the communicator fails. To a peer that is reached
// over several, PeerRails divides what goes, and survives the loss of all rails but one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "transport/message/peer_protocol.h"
#include "transport/message/peer_rails.h"
#include "transport/message/rail_book.h"
#include "transport/rail.h"
#include "transport/transport.h"

namespace trestle {

// A rail that this rank and a peer both have.
struct RailPath {
  size_t rail = 0;      // of RailSet::rails
  std::string address;  // of the peer, for the rail
  double rate = 0;      // bytes per second, as stated; 0: not known
};

struct RailSet {
  std::vector<std::unique_ptr<Rail>> rails;  // 1 to 64
  std::vector<std::string> names;            // for sentences: "eth0"
  std::string address;                       // of this rank, over all rails: as Transport::address()
  // From a peer's address to the common rails, at least one, in an order that both ranks compute alike. Missing: there
  // is one rail, and the peer's address is its address.
  std::function<Result<std::vector<RailPath>>(int32_t rank, const std::string& address)> paths;
  int numa_node = -1;  // the one that the interfaces are at; -1: not known
  PeerRails::Options options;
  Clock* clock = &monotonic_clock();
};

class RailTransport final : public Transport {
 public:
  // kind: as in base/transport_kinds.h, for sentences.
  RailTransport(const EndpointConfig& config, std::string kind, RailSet set);
  ~RailTransport() override;

  std::string address() const override { return set_.address; }
  Status set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) override;
  Result<bool> post_send(SendRequest& request) override;
  Result<bool> post_recv(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  Result<bool> progress() override;
  void look_everywhere() override;
  int event_fd() const override;
  bool prepare_sleep() override;
  void finish_sleep() override;
  void close(int linger_ms) override;

  // The rails to a peer are in the order of both ranks.
  size_t rails() const override { return set_.rails.size(); }
  std::vector<RailReport> rail_reports() const override { return book_.read(); }

 private:
  class Port;  // the events of one rail
  struct Peer {
    std::unique_ptr<PeerProtocol> protocol;  // exists from the first post or connection on
    std::unique_ptr<PeerRails> rails;        // with the protocol, where there are several
    std::vector<RailPath> paths;             // where there are several
    uint8_t rail = 0;                        // where there is one
    RailRecord* record = nullptr;            // with the protocol, where there is one
    uint64_t incoming = 0;                   // bytes of the last header's payload, where there is one
    bool left = false;                       // said goodbye and closed
    bool has_left() const { return left || (protocol != nullptr && protocol->peer_left()); }
    size_t path_of(size_t rail) const;
  };
  Peer& at(int32_t rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& at(int32_t rank) const { return peers_[static_cast<size_t>(rank)]; }
  const std::string& name(int32_t rank) const { return names_[static_cast<size_t>(rank)]; }
  PeerProtocol& protocol_of(int32_t rank);
  void add_rails(int32_t rank, PeerProtocol& protocol);
  RailRecord& add_record(int32_t rank, size_t rail, size_t rails);
  void log_change(int32_t rank, size_t path, bool up, const std::string& why) const;
  Result<PeerProtocol*> reach(int32_t rank);
  Status check_left(int32_t rank);
  Status check_gone(int32_t rank);
  bool said_on_all(const Peer& peer) const;
  Error fail(Error error);
  Error protocol_error(int32_t rank, const Error& error);
  int64_t now() const { return set_.clock->now_ns(); }

  // The events of rail `rail`.
  void connected(size_t rail, int32_t rank);
  RailPeer peer(size_t rail, int32_t rank) const;
  Status ended(size_t rail, int32_t rank);
  Status lost(size_t rail, int32_t rank, const Error& why);
  bool next_control(size_t rail, int32_t rank, Frame& header);
  Result<std::span<const Piece>> begin(size_t rail, int32_t rank, const Frame& header);

  // rail_transport_life.cpp
  Status watch_rails();
  Result<bool> drive_rails();
  Status tick();
  Status fault(size_t rail, const std::string& why);
  Status gone(int32_t rank);
  bool needs_ticks() const;
  void arm_timer(bool on);
  void close_several(int64_t deadline_ns);
  bool close_peer(Peer& peer, bool hurry);
  bool nothing_up(const Peer& peer) const;

  const int32_t rank_;
  const std::string kind_;
  const PeerLimits limits_;
  std::vector<std::string> names_;
  BufferPool pool_;
  RailBook book_;
  std::vector<ProbeBudget> probes_;        // by rail
  std::vector<RailSuspicion> suspicions_;  // by rail
  std::vector<Peer> peers_;
  std::vector<int32_t> several_;  // peers with several rails, and a protocol
  RailSet set_;
  std::vector<std::unique_ptr<Port>> ports_;
  UniqueFd epoll_;  // with several rails: theirs and the timer
  UniqueFd timer_;
  bool timer_on_ = false;
  uint32_t rounds_ = 0;
  int64_t faults_seen_ns_ = 0;
  std::optional<Error> error_;
  bool closed_ = false;
  bool says_goodbye_ = false;  // once it is closed
};

}  // namespace trestle
