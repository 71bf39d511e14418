// Attempt: a connection that is not yet believed: on its way out, or come in from anybody. Nonblocking; driven from the
// tcp transport's epoll, owned by it.
//
//   out: connecting -> handshake -> waits for the acceptor's verdict -> kWelcome: acknowledges the handshake -> end
//                                                                    -> kYield -> end
//   in:  handshake -> judged by the owner -> kWelcome is sent -> waits for the acknowledgement -> end
//                                         -> kYield is sent -> end
//
// The verdict follows right behind the acceptor's proof, and the acknowledgement answers both: so neither counts on a
// connection that the other one has given up, and a welcome costs no round trip of its own.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/auth/strangers.h"
#include "transport/socket/socket.h"
#include "transport/tcp/frame.h"

namespace trestle {

// Who this rank is; outlives the attempts.
struct AttemptContext {
  std::string job;
  int32_t rank = 0;
  Credentials credentials;
  TcpOptions options;
};

class Attempt {
 public:
  enum class Stage : uint8_t {
    kConnecting,
    kHandshake,
    kJudge,
    kAnswer,
    kConfirmation,
    kVerdict,
    kConfirm,
    kWelcomed,
    kYielded
  };

  // Out to `peer`, `fd` being on its way there.
  Attempt(const AttemptContext& context, UniqueFd fd, int32_t peer);
  // In, from whoever it may be; to be given up at `deadline_ns`.
  Attempt(const AttemptContext& context, UniqueFd fd, int64_t deadline_ns);

  // Moves as far as it can: ends at kJudge, kWelcomed, kYielded, or where the socket would block. Errors are final.
  Status drive();
  // The owner's decision about the peer that has proved itself, at kJudge; drive() again to send it.
  void judge(bool welcome);

  Stage stage() const { return stage_; }
  bool outgoing() const { return outgoing_; }
  // A welcome that the peer has not acknowledged: it may count on the connection, its owner must not yet. Also after a
  // failure.
  bool promised() const { return welcome_ && (stage_ == Stage::kAnswer || stage_ == Stage::kConfirmation); }
  // After a failure: it says nothing about the peer's mind, which may have run out of something. Worth another attempt.
  bool lost() const { return lost_; }
  // Something came, but not a whole handshake.
  bool half() const { return stage_ == Stage::kHandshake && said_; }
  // What an incoming one has given of itself.
  StrangerClaim claim() const { return promised() ? StrangerClaim::kPromised : claim_of(handshake_); }
  const SocketAddress& from() const { return from_; }  // of an incoming one
  // Of an incoming one as claimed, proved from kJudge on; -1: not known yet.
  int32_t peer() const { return outgoing_ ? peer_ : handshake_.peer_rank(); }
  int fd() const { return fd_.get(); }
  UniqueFd take_fd() { return std::move(fd_); }
  int64_t deadline_ns() const { return deadline_ns_; }

 private:
  Result<bool> step();  // false: would block
  Result<bool> step_connecting();
  Result<bool> step_handshake();
  Result<bool> step_answer();
  Result<bool> step_confirmation();
  Result<bool> step_verdict();
  Result<bool> step_confirm();
  Result<bool> send_handshake();
  Result<bool> receive_handshake();
  Error lose(const char* sentence);

  const AttemptContext& context_;
  UniqueFd fd_;
  const bool outgoing_;
  const int32_t peer_;
  const int64_t deadline_ns_;
  Handshake handshake_;
  Stage stage_;
  bool lost_ = false;
  bool said_ = false;
  SocketAddress from_;  // while it was connected
  bool welcome_ = false;
  std::array<std::byte, kFrameBytes> frame_{};  // the answer or the verdict
  size_t frame_bytes_ = 0;                      // of it that were sent or received
};

}  // namespace trestle
