// ShmSockets: the Unix sockets of one rank. They introduce ranks to each other, carry descriptors of memory, wake
// sleepers and tell when a process is gone. Message data never goes through them.
//
// Each rank listens on an abstract name. A rank that wants to talk to a peer connects, both prove that they belong to
// the job (transport/auth), and it sends its lane. The peer does the same in its own direction. So a pair has two
// sockets, and no rule is needed for which side connects. Owned by a transport, called under the rank's progress lock.
// Nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor_room.h"
#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/transport.h"

namespace trestle {

enum class ShmFrameKind : uint32_t {
  kWake = 1,     // only wakes the peer
  kLane = 2,     // with a descriptor of `bytes`: the control segment of the sender's lane
  kData = 3,     // with a descriptor: its data segment
  kMemory = 4,   // with a descriptor: allocation `id` of the sender
  kGoodbye = 5,  // this connection ends in order
  // The receiver's message (id: operation, bytes: offset, phase, message) was read, as in a lane.
  kRead = 6,
};

struct ShmFrame {
  ShmFrameKind kind = ShmFrameKind::kWake;
  uint32_t zero = 0;
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint32_t phase = 0;
  uint32_t message = 0;
};

class ShmSocketEvents {
 public:
  virtual ~ShmSocketEvents() = default;
  // The connection to the peer is proved: frames can be sent.
  virtual Status on_ready(int32_t peer) = 0;
  // A frame of a proved peer. poll() returns the errors.
  virtual Status on_frame(int32_t peer, const ShmFrame& frame, UniqueFd fd) = 0;
};

class ShmSockets {
 public:
  static Result<std::unique_ptr<ShmSockets>> create(const EndpointConfig& config, ShmSocketEvents& events);

  const std::string& address() const { return name_; }
  void set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& names);
  bool reachable(int32_t peer) const { return !peers_[peer].address.empty(); }
  const std::string& name(int32_t peer) const { return peers_[peer].name; }

  // Begins to connect; later calls do nothing.
  Status want(int32_t peer);
  bool ready(int32_t peer) const { return peers_[peer].state == State::kReady; }
  bool connecting() const { return connecting_ != 0; }
  // A peer's queue was full: only poll() tries again, no event will come.
  bool wants_retry() const;
  // The peer said goodbye: its sockets are closed, but its lane can still be read.
  bool left(int32_t peer) const { return peers_[peer].left; }

  // Frames arrive in the order in which they were sent on a connection. False: the socket is full.
  Result<bool> send(int32_t peer, const ShmFrame& frame, int fd);
  // Sends kWake on whichever connection exists. A full socket wakes the peer just as well.
  void wake(int32_t peer);

  // Handles everything that has arrived on the sockets. True if there was anything. An error names the peer.
  Result<bool> poll();
  // Handles only what the peer has sent on its own connection: for a descriptor that must be there.
  Status read_frames(int32_t peer);

  int event_fd() const { return epoll_.get(); }
  // Frames to send to the peer before the goodbye, on every connection with it.
  void set_final_frames(int32_t peer, std::vector<ShmFrame> frames) { peers_[peer].final_frames = std::move(frames); }
  // Says goodbye. Waits for full sockets until `deadline_ns` of the monotonic clock.
  void close(int64_t deadline_ns);

 private:
  enum class State : uint8_t { kNone, kWanted, kProving, kReady, kOver };
  // One socket, with its handshake until that is done.
  struct Stream {
    UniqueFd fd;
    std::unique_ptr<HandshakeExchange> exchange;
    std::array<std::byte, sizeof(ShmFrame)> in{};
    size_t in_bytes = 0;
    std::vector<UniqueFd> descriptors;
    const Handshake& handshake() const { return exchange->handshake(); }
  };
  struct Peer {
    std::string address;
    std::string name;
    State state = State::kNone;  // of the connection that this rank made
    Stream out;
    Stream in;  // the connection that the peer made
    bool left = false;
    int attempts = 0;  // to connect
    std::vector<ShmFrame> final_frames;
  };
  enum class Source : uint32_t { kListener, kOut, kIn, kStranger };

  ShmSockets(const EndpointConfig& config, ShmSocketEvents& events) : config_(without_names(config)), events_(events) {}
  static EndpointConfig without_names(EndpointConfig config) {
    std::vector<std::string>().swap(config.peer_names);
    return config;
  }
  Credentials credentials() const;
  bool is_other_rank(int32_t rank) const { return rank >= 0 && rank < config_.ranks && rank != config_.rank; }

  // sockets_connect.cpp
  Status connect(int32_t peer);
  Status out_failed(int32_t peer, const Error& error);
  // True: the handshake is done. False: more is awaited.
  static Result<bool> step_handshake(Stream& stream);
  Status step_out(int32_t peer);
  Status accept_some();
  Status watch_listener_again();
  Status admit(UniqueFd fd);
  void refuse(const Stream& stranger, const Error& error);
  void warn_once(const std::string& reason);
  Status step_stranger(uint32_t serial);

  // sockets.cpp
  Status watch(int fd, Source source, uint32_t index);
  Result<int> poll_once();
  // Reads all frames that have arrived. True: the stream has ended.
  Result<bool> step_frames(int32_t peer, Stream& stream);
  Status read_final_frames(int32_t peer);
  Status ended(int32_t peer, Stream& stream);
  void drop(Stream& stream);
  static void say_goodbye(const Stream& stream, const std::vector<ShmFrame>& final_frames, int64_t deadline_ns);

  const EndpointConfig config_;
  ShmSocketEvents& events_;
  std::string name_;
  UniqueFd epoll_;
  UniqueFd listener_;
  std::vector<Peer> peers_;
  DescriptorRoom room_;                   // for the connections with the peers
  std::map<uint32_t, Stream> strangers_;  // accepted, not proved yet; by serial number: the oldest first
  uint32_t next_serial_ = 0;
  Admission admission_;
  bool pauses_ = false;  // after a failure: the listener is not watched
  uint32_t connecting_ = 0;
  OncePerKey warned_;
};

}  // namespace trestle
