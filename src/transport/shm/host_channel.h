// HostChannel: one user's share of the sockets that the communicators of a rank have in common (host_sockets.h). The
// channels of one name on all ranks of a communicator reach each other and nobody else: frames, the end of a channel
// and the numbers of ranks are its own.
//
// Owned by its user, who calls it from one thread at a time, under the rank's progress lock where there is one. All
// ranks open a channel before any of them uses it. Nothing blocks except close().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/shm/host_sockets.h"

namespace trestle {

class HostChannelEvents {
 public:
  virtual ~HostChannelEvents() = default;
  // The connection to the peer is proved: frames can be sent.
  virtual Status on_ready(int32_t peer) = 0;
  // A frame of a proved peer. poll() returns the errors.
  virtual Status on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) = 0;
  // A frame of kBytes.
  virtual Status on_bytes(int32_t peer, const HostFrame& /*frame*/, std::string /*bytes*/) {
    return Error{Code::kRemoteError, "rank " + std::to_string(peer) + " sent bytes where frames were expected"};
  }
  // There is no connection to the peer any more, and it has not said goodbye.
  virtual Status on_lost(int32_t /*peer*/, const Error& why) { return why; }
};

class HostChannel {
 public:
  // name: on all ranks the same, and of no other channel. rank: of this rank in the communicator. events: outlives the
  // channel.
  static Result<std::unique_ptr<HostChannel>> open(const HostKin& kin, const std::string& name, int32_t rank,
                                                   HostChannelEvents& events);
  // Without a goodbye, as if the process ended: where this is the last channel, peers hear of a death. Where it is not,
  // they hear nothing.
  ~HostChannel();
  HostChannel(const HostChannel&) = delete;
  HostChannel& operator=(const HostChannel&) = delete;

  // Where the ranks of the host find this one: an abstract name.
  const std::string& address() const { return address_; }
  // By rank; "": not to be reached.
  void set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& names);
  const std::string& name(int32_t peer) const { return at(peer).name; }
  // Called under a lock when another thread has taken in something for this channel: poll() has something to do.
  void on_arrival(std::function<void()> ring);
  // For a thread that waits for this channel alone: until on_arrival(), event_fd() tells of that, too. Needs two
  // descriptors meanwhile. kSystemError: there are none.
  Status wait_alone();

  // Begins to connect; later calls do nothing. Errors: no address; the connection is lost.
  Status want(int32_t peer);
  // Its end is an error from now on, whoever connects.
  void use(int32_t peer) { at(peer).used = true; }
  bool ready(int32_t peer) const { return at(peer).ready; }
  bool connecting() const { return connecting_ != 0; }
  // There is something that no event of event_fd() tells of: only poll() finds it.
  bool wants_poll() const;
  // The peer said goodbye: it sends nothing more, but its lane can still be read.
  bool left(int32_t peer) const { return at(peer).left; }
  size_t left_count() const { return left_count_; }

  // Frames arrive in the order in which they were sent. False: the socket is full.
  Result<bool> send(int32_t peer, HostFrame frame, int fd, std::span<const std::byte> bytes = {});
  // Sends kWake on whichever connection exists. A full socket wakes the peer just as well.
  void wake(int32_t peer);

  // Handles everything that has arrived. True if there was anything. An error names the peer.
  Result<bool> poll();
  // Handles only what the peer has sent: for a descriptor that must be there.
  Status read_frames(int32_t peer);

  // Readable when something has arrived for any channel of this rank; -1 after close().
  int event_fd() const { return alone_ ? alone_.get() : event_fd_; }
  // Frames to send to the peer before the goodbye.
  void set_final_frames(int32_t peer, std::vector<HostFrame> frames) { at(peer).final_frames = std::move(frames); }
  // Bytes of a stream to send to the peer before the goodbye; several calls add up.
  void add_final_bytes(int32_t peer, uint64_t stream, std::span<const std::byte> bytes);
  // Says goodbye. Waits for full sockets until `deadline_ns` of the monotonic clock. Idempotent.
  void close(int64_t deadline_ns);

 private:
  friend class HostSockets;
  struct Peer {
    int32_t at = 0;  // its rank in the root
    std::string name;
    bool used = false;  // its end is an error
    bool wanted = false;
    bool ready = false;
    bool left = false;
    std::vector<HostFrame> final_frames;
    std::vector<std::string> final_messages;
  };
  struct Arrived {
    int32_t peer = 0;  // of the root; in the inbox: of this channel
    HostFrame frame;
    UniqueFd fd;
    std::string bytes;
  };

  HostChannel(const HostKin& kin, uint64_t id, int32_t rank, HostChannelEvents& events);
  Peer& at(int32_t peer) { return peers_[static_cast<size_t>(peer)]; }
  const Peer& at(int32_t peer) const { return peers_[static_cast<size_t>(peer)]; }
  // For HostSockets, under its mutex. by_other: this channel does not poll at this moment.
  void take(Arrived arrived, bool by_other);
  void ring(bool by_other);
  Status announce();
  Status handle(std::deque<Arrived> arrived);
  void leave(Peer& peer);
  Status look_for_ends();

  const std::shared_ptr<HostSockets> sockets_;
  const uint64_t id_;
  const int32_t rank_;
  HostChannelEvents& events_;
  std::string address_;
  int event_fd_ = -1;
  UniqueFd bell_;   // wait_alone(): rung by other threads
  UniqueFd alone_;  // an epoll descriptor with the bell and the sockets
  std::vector<Peer> peers_;
  std::vector<int32_t> rank_of_;  // by rank in the root; -1: not of this channel
  size_t left_count_ = 0;
  uint32_t connecting_ = 0;  // wanted, and neither ready nor over
  bool open_ = false;
  std::function<void()> ring_;     // under the sockets' mutex
  std::deque<Arrived> inbox_;      // under the sockets' mutex
  std::atomic<bool> rung_{false};  // something has come, or a peer has ended
};

}  // namespace trestle
