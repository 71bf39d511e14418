// ControlLink: one connection of a control mesh. It sends and receives frames over a nonblocking stream. ControlFrame:
// one such frame.
//
// Owned by a ControlMesh and used under its mutex. On the wire a frame is: payload length u32, kind u8, step u8, zero
// u16, seq u64, payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

enum class ControlKind : uint8_t { kHeartbeat = 1, kError, kAbort, kBye, kGather, kBarrier, kLetter };

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

class ControlLink {
 public:
  ControlLink(int32_t peer, UniqueFd socket, size_t most_payload)
      : peer_(peer), socket_(std::move(socket)), most_payload_(most_payload) {}

  int32_t peer() const { return peer_; }
  int fd() const { return socket_.get(); }
  bool open() const { return static_cast<bool>(socket_); }
  bool has_output() const { return out_at_ < out_.size(); }
  void end() { socket_.reset(); }

  // Queues a frame and sends what the kernel takes. After a send has failed, frames are dropped without an error: the
  // end of the connection is noticed by reading, after everything that the peer sent before it.
  void send(const ControlFrame& frame);
  void flush();

  enum class Reading : uint8_t { kOpen, kEnded, kMalformed };
  // Appends all complete frames that have arrived. kEnded: the connection has ended, orderly or not; `reason` says
  // which.
  Reading read(std::vector<ControlFrame>& frames, std::string& reason);

  int64_t last_heard_ns = 0;
  // The peer has sent a heartbeat, so its silence means something from now on.
  bool watched = false;
  bool silence_told = false;
  bool wants_writable = false;  // EPOLLOUT is asked for

 private:
  bool take_frames(std::vector<ControlFrame>& frames);

  int32_t peer_;
  UniqueFd socket_;
  size_t most_payload_;
  bool send_failed_ = false;
  std::string out_;
  size_t out_at_ = 0;
  std::string in_;
};

}  // namespace trestle
