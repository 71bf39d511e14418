// HostSockets: the Unix sockets of one rank to ranks of other processes on its host. They introduce ranks to each
// other, carry descriptors of memory, wake sleepers and tell when a process is gone. Message data never goes through
// them.
//
// A communicator and all that are split off from it share them on each rank, so a part of a communicator needs none of
// its own. Each user has a channel (host_channel.h). Ranks have their numbers in the communicator that all of these go
// back to, the root.
//
// Each rank listens on an abstract name. A rank that wants to talk to a peer connects, and both prove that they belong
// to the job (transport/auth). The peer does the same in its own direction. So a pair has two sockets, and no rule is
// needed for which side connects. The sockets exist while a channel is open.
//
// Any thread may call any function of its channels. The state is under one mutex, which is never held while a channel's
// events are handled. Nothing blocks except the end of a channel.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor_room.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/auth/admission.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/socket/socket.h"

namespace trestle {

enum class HostFrameKind : uint32_t {
  kWake = 1,     // only wakes the peer
  kLane = 2,     // with a descriptor of `bytes`: the control segment of the sender's lane
  kData = 3,     // with a descriptor: its data segment
  kMemory = 4,   // with a descriptor: allocation `id` of the sender
  kGoodbye = 5,  // the channel ends in order; of channel 0: the connection
  // The receiver's message (id: operation, bytes: offset, phase, message) was read, as in a lane.
  kRead = 6,
  kParcel = 7,  // with a descriptor, or without: descriptor_exchange.h
  kBytes = 8,   // followed by `bytes`, at most kMostFrameBytes, of the stream `id`: host_streams.h
};

inline constexpr size_t kMostFrameBytes = 4096;

struct HostFrame {
  HostFrameKind kind = HostFrameKind::kWake;
  uint32_t zero = 0;
  uint64_t channel = 0;  // the channel fills it in
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint32_t phase = 0;
  uint32_t message = 0;
};

// As it travels. bytes: of a frame of kBytes.
std::string message_of(HostFrame frame, std::span<const std::byte> bytes);

// A rank of the root.
struct HostMember {
  int32_t rank = 0;
  int32_t ranks = 1;
  std::string job;                // its id, in hexadecimal
  std::vector<std::byte> secret;  // key for the mutual proof; empty: none
};

class HostChannel;

class HostSockets {
 public:
  // Opens nothing.
  explicit HostSockets(HostMember member)
      : member_(std::move(member)),
        credentials_{member_.secret, job_id(member_.job), member_.rank},
        peers_(static_cast<size_t>(member_.ranks)) {}
  HostSockets(const HostSockets&) = delete;
  HostSockets& operator=(const HostSockets&) = delete;

 private:
  friend class HostChannel;

  enum class State : uint8_t { kNone, kWanted, kProving, kReady, kOver };
  // One socket, with its handshake until that is done.
  struct Stream {
    UniqueFd fd;
    std::unique_ptr<HandshakeExchange> exchange;
    std::array<std::byte, sizeof(HostFrame) + kMostFrameBytes> in;
    size_t in_bytes = 0;
    size_t wanted_bytes = sizeof(HostFrame);  // of the frame that is being read
    size_t frames = 0;                        // read since it was empty
    std::vector<UniqueFd> descriptors;
    const Handshake& handshake() const { return exchange->handshake(); }
  };
  struct Peer {
    std::string address;
    std::string name;
    State state = State::kNone;  // of the connection that this rank made
    Stream out;
    Stream in;                        // the connection that the peer made
    bool left = false;                // it has ended its connections in order
    Status lost;                      // why there is no connection any more
    int attempts = 0;                 // to connect
    std::deque<std::string> waiting;  // last messages of channels, for the connection to be ready or to have room
  };
  enum class Source : uint32_t { kListener, kOut, kIn, kStranger };

  Status enter(HostChannel& channel);
  // The last channel ends the connections. Their goodbye waits for full sockets until `goodbye_ns` of the monotonic
  // clock; nullopt: there is none.
  void leave(HostChannel& channel, std::optional<int64_t> goodbye_ns);
  // Handles what has arrived on all sockets. True if there was anything.
  Result<bool> poll(const HostChannel& by) TRESTLE_REQUIRES(mutex_);
  void set_address(int32_t peer, const std::string& address, const std::string& name) TRESTLE_REQUIRES(mutex_);
  void make_room() TRESTLE_REQUIRES(mutex_);
  Status want(int32_t peer) TRESTLE_REQUIRES(mutex_);
  // False: the socket is full, or there is no connection.
  Result<bool> send(int32_t peer, const HostFrame& frame, int fd, std::span<const std::byte> bytes = {})
      TRESTLE_REQUIRES(mutex_);
  // On whichever connection exists.
  void wake(int32_t peer, const HostFrame& frame) TRESTLE_REQUIRES(mutex_);
  // Sends frames on every connection with the peer, or gives them to the one that is being made. by_out, by_in: how
  // many have gone. False: a socket is full.
  bool send_last(int32_t peer, const std::vector<HostFrame>& frames, size_t& by_out, size_t& by_in)
      TRESTLE_REQUIRES(mutex_);
  // Of send_last(): what has not gone goes later, while any channel polls.
  void keep_last(int32_t peer, std::string message) TRESTLE_REQUIRES(mutex_);
  bool send_waiting(Peer& peer) TRESTLE_REQUIRES(mutex_);
  const Peer& peer(int32_t rank) const TRESTLE_REQUIRES(mutex_) { return peers_[static_cast<size_t>(rank)]; }
  void read_frames(int32_t peer) TRESTLE_REQUIRES(mutex_);

  // host_connect.cpp
  bool is_other_rank(int32_t rank) const { return rank >= 0 && rank < member_.ranks && rank != member_.rank; }
  Status connect(int32_t peer) TRESTLE_REQUIRES(mutex_);
  Status out_failed(int32_t peer, const Error& error) TRESTLE_REQUIRES(mutex_);
  Status step_out(int32_t peer) TRESTLE_REQUIRES(mutex_);
  Status accept_some() TRESTLE_REQUIRES(mutex_);
  Status watch_listener_again() TRESTLE_REQUIRES(mutex_);
  Status admit(UniqueFd fd) TRESTLE_REQUIRES(mutex_);
  void refuse(const Stream& stranger, const Error& error) TRESTLE_REQUIRES(mutex_);
  Status step_stranger(uint32_t serial) TRESTLE_REQUIRES(mutex_);

  // host_sockets.cpp
  Status open() TRESTLE_REQUIRES(mutex_);
  void end(std::optional<int64_t> goodbye_ns) TRESTLE_REQUIRES(mutex_);
  Status watch(int fd, Source source, uint32_t index) TRESTLE_REQUIRES(mutex_);
  Result<bool> poll_all() TRESTLE_REQUIRES(mutex_);
  Result<int> poll_once() TRESTLE_REQUIRES(mutex_);
  void read_stream(int32_t peer, Stream& stream) TRESTLE_REQUIRES(mutex_);
  // Reads all frames that have arrived. True: the stream has ended.
  Result<bool> step_frames(int32_t peer, Stream& stream) TRESTLE_REQUIRES(mutex_);
  Status take_frame(int32_t peer, Stream& stream) TRESTLE_REQUIRES(mutex_);
  void deliver(int32_t peer, const HostFrame& frame, UniqueFd fd, std::string bytes) TRESTLE_REQUIRES(mutex_);
  Status read_final_frames(int32_t peer) TRESTLE_REQUIRES(mutex_);
  Status ended(int32_t peer, Stream& stream) TRESTLE_REQUIRES(mutex_);
  void lose(int32_t peer, Error why) TRESTLE_REQUIRES(mutex_);
  void drop(Stream& stream) TRESTLE_REQUIRES(mutex_);
  void ring_all() TRESTLE_REQUIRES(mutex_);

  Mutex mutex_;
  const HostMember member_;
  const Credentials credentials_;
  std::string name_ TRESTLE_GUARDED_BY(mutex_);
  UniqueFd epoll_ TRESTLE_GUARDED_BY(mutex_);
  UniqueFd listener_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<Peer> peers_ TRESTLE_GUARDED_BY(mutex_);
  std::map<uint64_t, HostChannel*> channels_ TRESTLE_GUARDED_BY(mutex_);
  const HostChannel* poller_ TRESTLE_GUARDED_BY(mutex_) = nullptr;  // hears of all by itself
  DescriptorRoom room_ TRESTLE_GUARDED_BY(mutex_);                  // for the connections with the peers
  size_t reachable_ TRESTLE_GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, Stream> strangers_ TRESTLE_GUARDED_BY(mutex_);  // not proved yet; by serial number: oldest first
  uint32_t next_serial_ TRESTLE_GUARDED_BY(mutex_) = 0;
  Admission admission_ TRESTLE_GUARDED_BY(mutex_);
  bool pauses_ TRESTLE_GUARDED_BY(mutex_) = false;  // after a failure: the listener is not watched
  uint32_t connecting_ TRESTLE_GUARDED_BY(mutex_) = 0;
  bool waiting_ TRESTLE_GUARDED_BY(mutex_) = false;  // a peer may have messages waiting
  OncePerKey warned_ TRESTLE_GUARDED_BY(mutex_);
};

// How the ranks of a communicator reach each other on a host.
struct HostKin {
  std::shared_ptr<HostSockets> sockets;
  std::vector<int32_t> ranks;  // by rank of the communicator: its rank in the root
};
// Of a communicator that is a root itself.
HostKin root_kin(HostMember member);

}  // namespace trestle
