// TcpRail: authenticated connections over TCP, one per pair of ranks, as a rail. Internal to src/transport/tcp. Owned
// by a RailTransport, used under the rank's progress lock.
//
// Three parts: which peers are connected and how connections are made (tcp_connect.cpp), moving bytes between sockets
// and FrameStreams (tcp_rail.cpp), and the end (tcp_close.cpp).
//
// Connections. At the first post to a peer this rank connects to it; the peer may do so at the same time. The acceptor
// decides when the peer has proved itself. It welcomes the connection, unless it is itself connecting to the same peer
// and has the lower rank: then it yields, and the peer waits for the other connection. So both keep the connection that
// the lower rank made, and nothing is sent on one that will be dropped. A rank makes few connections at a time
// (connect_queue.h), but accepts any number: so every attempt is answered.
//
// epoll is edge-triggered: `readable` and `writable` remember an edge until the socket reports that it would block.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor_room.h"
#include "base/log.h"
#include "transport/auth/admission.h"
#include "transport/message/frame_stream.h"
#include "transport/message/rail_transport.h"
#include "transport/rail.h"
#include "transport/rails/choice.h"
#include "transport/tcp/attempt.h"
#include "transport/tcp/connect_queue.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/unsent_limit.h"

namespace trestle {

// The rails of this rank, as the options say (tcp_rails.cpp). An interface may go down between the look at it and the
// moment when its rail begins to listen. So `look` is called again after a failure, as long as it finds other rails; it
// is choose_tcp_rails() on the interfaces of that moment.
using LookForRails = std::function<Result<RailChoice>()>;
Result<RailSet> make_tcp_rails(const EndpointConfig& config, const TcpTransportOptions& options,
                               const LookForRails& look);
// Which of a host's interfaces they are. None: one rail, at the first of single_addresses() that can be bound.
Result<RailChoice> choose_tcp_rails(const std::vector<HostInterface>& interfaces, const EndpointConfig& config,
                                    const TcpTransportOptions& options);

// Where a single rail listens: on the interface that is named, else at the address that reaches the other ranks, unless
// TRESTLE_SOCKET_IFNAME or the family excludes it; else as listening_addresses() chooses.
Result<std::vector<SocketAddress>> single_addresses(const std::vector<HostInterface>& interfaces,
                                                    const EndpointConfig& config, const TcpTransportOptions& options);

class TcpRail final : public Rail {
 public:
  // bound_to: the interface that all connections with other hosts use; "": the kernel's choice.
  static Result<std::unique_ptr<TcpRail>> create(const EndpointConfig& config, const TcpTransportOptions& options,
                                                 Listener listener, const std::string& bound_to = "");
  ~TcpRail() override { close(0); }

  std::string address() const override { return address_; }
  const SocketAddress& listens_at() const { return listener_.address; }
  Status set_peers(const std::vector<std::string>& addresses) override;
  uint64_t memory_bytes() const override { return read_buffer_.size(); }
  std::string fault() const override;
  Status reach(int32_t rank) override;
  void drop(int32_t rank) override;
  bool in_line(int32_t rank) const override { return peers_[static_cast<size_t>(rank)].in_line; }
  bool is_idle(int32_t rank) const override;
  Result<bool> write(int32_t rank) override;
  Result<bool> progress() override;
  int event_fd() const override { return epoll_.get(); }
  void look_everywhere() override { poll_now_ = true; }
  bool prepare_sleep() override;
  void finish_sleep() override { poll_now_ = true; }
  void close(int linger_ms) override;

 private:
  struct Peer {
    std::unique_ptr<FrameStream> stream;  // of the connection
    UniqueFd fd;                          // the pair's connection, once it is agreed on
    SocketAddress address;                // length 0: not reachable through this transport
    std::unique_ptr<Attempt> attempt;
    int attempts = 0;
    bool in_line = false;  // connects when it is its turn
    bool yielded = false;  // waits for the peer's connection, or for its acknowledgement
    // This rank made the pair's connection. The peer gives up its own, if it had begun one.
    bool ours = false;
    bool gave_up = false;  // the peer has given up its own connection
    bool left = false;     // said goodbye and closed
    bool readable = false;
    bool writable = false;
    // The end of the stream has been reported: data may follow a short read.
    bool hangup = false;
    UnsentLimit unsent;
  };

  TcpRail(const EndpointConfig& config, const TcpTransportOptions& options, Listener listener, UniqueFd epoll,
          const std::string& bound_to);

  bool is_here(const SocketAddress& address) const;
  ConnectFrom from_here(const SocketAddress& to) const;

  Error fail(Code code, std::string sentence);
  Error event_error(int32_t rank, const Error& error);
  Status connection_lost(int32_t rank, const Error& error);
  Status lose(int32_t rank, const Error& why);
  const std::string& name(int32_t rank) const { return events_->name(rank); }
  bool has_output(int32_t rank) const;
  void limit_unsent(int32_t rank);
  void look_at_unsent(int32_t rank);
  Result<bool> write(int32_t rank, bool fragments);
  void make_room();

  // tcp_connect.cpp
  Status connect_to(int32_t rank);
  Status connect_those_in_line();
  bool arm_timer();
  Status drive_outgoing(int32_t rank);
  void drive_stranger(uint32_t serial);
  void accept_strangers();
  void admit(UniqueFd fd, int64_t now_ns);
  void drop_late_strangers();
  void refuse(const Attempt& attempt, const std::string& reason);
  void lose_stranger(const Attempt& attempt, const std::string& reason);
  Result<bool> decide(int32_t rank);
  Status settle(Attempt& attempt);
  void withdraw(int32_t rank);
  void adopt(int32_t rank, Attempt& attempt);
  Status watch(int fd, uint64_t key);

  // tcp_rail.cpp
  Result<bool> poll_events();
  bool should_poll();
  Result<bool> serve(int32_t rank, bool direct);
  Result<bool> read_from(int32_t rank);
  Status peer_ended(int32_t rank);

  // tcp_close.cpp
  struct ClosingPeer {
    int32_t rank;
    bool ended;  // our side is shut
  };
  bool step_close(ClosingPeer& closing);
  void adopt_acknowledged(std::vector<ClosingPeer>& open);
  void linger(int64_t deadline_ns);

  const AttemptContext context_;
  const std::string bound_to_;
  std::vector<HostAddress> hosts_here_;  // the addresses of this host, where bound_to_ says something
  Listener listener_;
  UniqueFd epoll_;
  std::string address_;
  DescriptorRoom room_;  // for the connections with the peers
  std::vector<Peer> peers_;
  std::vector<int32_t> connected_;  // ranks with an fd
  ConnectQueue queue_;
  UniqueFd timer_;  // wakes a sleeper when an attempt counts no longer; made at first use
  struct Stranger {
    uint32_t serial;
    std::unique_ptr<Attempt> attempt;
  };
  // A promised connection is no stranger: the peer may count on it, however late its acknowledgement comes.
  static bool is_stranger(const Stranger& s) { return !s.attempt->promised(); }
  std::vector<Stranger> strangers_;  // oldest first
  uint32_t next_serial_ = 0;
  Admission admission_;
  bool accept_again_ = false;  // the listener's queue may hold connections without a new edge
  OncePerKey logged_;
  std::vector<iovec> vectors_;
  std::vector<std::byte> read_buffer_;
  std::optional<Error> error_;
  size_t awaiting_ = 0;     // links that wait for their peer, as of the last progress
  bool unsettled_ = false;  // something waits for a connection or for room in a socket
  uint32_t polls_skipped_ = 0;
  bool poll_now_ = true;
  bool closed_ = false;
};

}  // namespace trestle
