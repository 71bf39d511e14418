// ControlLink: one link of a control mesh. It sends and receives frames over a nonblocking stream. ControlFrame: one
// such frame.
//
// A link may outlive its connection: where two ranks have several rails, the mesh makes the connection anew over
// another one (link_moves.h). Both ends count the frames of each direction, except heartbeats and acknowledgements.
// Every frame says how many frames of the other direction have come whole. A sender keeps those that have not. So over
// a new connection each end sends again exactly what the other one lacks: no frame is lost, and none comes twice.
//
// Between ranks of one host that share sockets (transport/shm/host_streams.h) a link has no connection of its own, but
// a stream there: it is open until it ends, and goes nowhere else.
//
// Owned by a ControlMesh and used under its mutex. On the wire a frame is: payload length u32, kind u8, step u8, zero
// u16, seq u64, frames that have come u64, payload.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/shm/host_streams.h"

namespace trestle {

// kAck: nothing but the count of frames that have come.
enum class ControlKind : uint8_t { kHeartbeat = 1, kError, kAbort, kBye, kGather, kBarrier, kLetter, kAck };

struct ControlFrame {
  ControlKind kind = ControlKind::kHeartbeat;
  uint8_t step = 0;
  uint64_t seq = 0;
  std::string payload;
};

// Why the ranks stop: the payload of kError and kAbort frames.
struct FailureReport {
  int32_t origin = 0;  // the rank that noticed the failure
  Error error;
};
inline constexpr size_t kMaxSentence = 16 * 1024;
std::string encode(const FailureReport& failure);
std::optional<FailureReport> decode_failure_report(const std::string& payload, int32_t ranks);

// A frame on the wire. came: as above.
std::string encode(const ControlFrame& frame, uint64_t came);

// Open: it has a connection. Away: it has none, but may get one. Ended: neither.
class ControlLink {
 public:
  // Frames are kept only after keep_frames(). Without a socket the link is away: it never had a connection.
  ControlLink(int32_t peer, UniqueFd socket, size_t most_payload);
  // streams: outlives the link. sends, receives: the two streams, from this end.
  ControlLink(int32_t peer, HostStreams& streams, uint64_t sends, uint64_t receives, size_t most_payload);

  int32_t peer() const { return peer_; }
  int fd() const { return socket_.get(); }  // -1: it has none
  bool open() const { return socket_ || streams_ != nullptr; }
  bool away() const { return away_; }
  bool ended() const { return !open() && !away_; }
  bool has_output() const { return out_at_ < out_.size(); }
  // Of the other end of the present or last connection: "10.0.0.2"; "": not known, or a Unix socket.
  const std::string& host() const { return host_; }
  void end();
  // Over streams: gives them what they have not taken yet, for their end.
  void hand_over_output();

  // Queues a frame and sends what the kernel takes. While the link is away, frames are kept. After a send has failed,
  // frames that are not kept are dropped without an error: the end of the connection is noticed by reading, after
  // everything that the peer sent before it.
  void send(const ControlFrame& frame);
  void flush();

  enum class Reading : uint8_t { kOpen, kEnded, kLost, kMalformed };
  // Appends all complete frames that have arrived. kEnded: the other end has ended the connection, orderly or not;
  // `reason` says which. kLost: this kernel has given it up, because nothing came from the other host any more.
  Reading read(std::vector<ControlFrame>& frames, std::string& reason);

  // From now on frames are kept until the peer has them. Before the first frame.
  void keep_frames() { keeps_ = true; }
  // The link ends with its connection. Nothing is kept any more.
  void keep_no_frames();
  // Ends the connection, if there is one: nothing of it is read any more, so came() is final. The link is away.
  void part();
  // How many counted frames of the peer have come whole.
  uint64_t came() const { return came_; }
  // A new connection for a link that is away. `came`: how many frames of this side the peer has. Sends again the rest.
  // False, and nothing is changed: this side has not sent so many, or it does not keep any more what the peer lacks.
  bool resume(UniqueFd socket, uint64_t came);
  // The peer has not acknowledged all that was sent.
  bool keeps_any() const { return !kept_.empty(); }
  // An acknowledgement is due: since the last one the peer has sent much, or a goodbye. A peer that has said goodbye
  // waits for its acknowledgement.
  bool owes_ack() const;

  // The most that is kept for a peer that acknowledges nothing. With more, nothing is kept until the peer has
  // acknowledged all, and a connection that ends meanwhile ends the link.
  static constexpr size_t kMostKeptBytes = size_t{64} << 20;

  int64_t last_heard_ns = 0;
  // The peer has sent a heartbeat, so its silence means something from now on.
  bool watched = false;
  bool silence_told = false;
  bool wants_writable = false;  // EPOLLOUT is asked for
  bool made = true;             // it has a connection, or had one
  bool moved = false;           // this is not its first connection
  bool bye_came = false;        // the peer's own goodbye: nothing of it is missing

 private:
  Result<size_t> write(std::span<const std::byte> bytes);
  Result<size_t> read_some(std::span<std::byte> bytes);
  bool take_frames(std::vector<ControlFrame>& frames);
  void keep(const std::string& bytes);
  bool confirm(uint64_t came);
  void drop_output();
  void drop_kept();

  int32_t peer_;
  UniqueFd socket_;
  HostStreams* streams_ = nullptr;  // instead of a socket, until it ends
  uint64_t sends_ = 0;
  uint64_t receives_ = 0;
  size_t most_payload_;
  bool away_ = false;
  bool send_failed_ = false;
  std::string lost_by_;  // the error of the send that lost the connection: the kernel reports it only once
  std::string host_;
  std::string out_;
  size_t out_at_ = 0;
  std::string in_;

  uint64_t sent_ = 0;        // counted frames, from the beginning
  uint64_t came_ = 0;        // counted frames of the peer
  uint64_t told_ = 0;        // how many of came_ this side has acknowledged
  size_t untold_bytes_ = 0;  // the size of those that it has not
  bool owes_bye_ = false;    // a goodbye is among these
  bool keeps_ = false;
  bool too_much_ = false;         // nothing is kept until the peer has all
  std::deque<std::string> kept_;  // the last of the counted frames, as sent
  size_t kept_bytes_ = 0;
};

}  // namespace trestle
