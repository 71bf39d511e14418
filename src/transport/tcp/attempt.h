// Attempt: a connection that is not yet trusted: an outgoing one, or one from an unknown peer. Nonblocking; driven
// from the tcp transport's epoll, owned by it.
//
//   out: connecting -> handshake -> waits for the acceptor's verdict -> kWelcome: acknowledges the handshake -> end
//                                                                    -> kYield -> end
//   in:  handshake -> judged by the owner -> kWelcome is sent -> waits for the acknowledgement -> end
//                                         -> kYield is sent -> end
//
// The verdict follows directly behind the acceptor's proof, and the acknowledgement answers both. So neither side
// counts on a connection that the other one has given up, and a welcome costs no round trip of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"
#include "transport/frame.h"
#include "transport/socket/socket.h"

namespace trestle {

// This rank's identity and options; outlives the attempts.
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

  // Outgoing to `peer`; `fd` is connecting.
  Attempt(const AttemptContext& context, UniqueFd fd, int32_t peer);
  // Accepted from an unknown peer; to be given up at `deadline_ns`.
  Attempt(const AttemptContext& context, UniqueFd fd, int64_t deadline_ns);

  // Advances as far as it can: until kJudge, kWelcomed, kYielded, or until the socket would block. Errors are final.
  Status drive();
  // The owner's decision at kJudge, when the peer has proved itself. Call drive() again to send it.
  void judge(bool welcome);

  Stage stage() const { return stage_; }
  bool outgoing() const { return outgoing_; }
  // This rank has welcomed the peer and has no acknowledgement yet. The peer may count on the connection already; the
  // owner must not yet. Also true after a failure.
  bool promised() const { return welcome_ && (stage_ == Stage::kAnswer || stage_ == Stage::kConfirmation); }
  // After a failure: the connection broke, perhaps because the peer lacked some resource. It is worth another attempt.
  bool lost() const { return lost_; }
  // Something has arrived, but not a whole handshake.
  bool half() const { return stage_ == Stage::kHandshake && exchange_.heard(); }
  // How far an incoming attempt has got.
  StrangerClaim claim() const { return promised() ? StrangerClaim::kPromised : claim_of(exchange_.handshake()); }
  const SocketAddress& from() const { return from_; }  // of an incoming attempt
  // Of an incoming attempt: the claimed rank, proved from kJudge on; -1: not known yet.
  int32_t peer() const { return outgoing_ ? peer_ : exchange_.handshake().peer_rank(); }
  int fd() const { return fd_.get(); }
  UniqueFd take_fd() { return std::move(fd_); }
  int64_t deadline_ns() const { return deadline_ns_; }

 private:
  Result<bool> step();  // false: would block
  Result<bool> step_connecting();
  Result<bool> step_handshake();
  Result<bool> step_answer();
  Result<bool> step_verdict();
  Result<bool> step_acknowledgement();
  Error lose(std::string sentence);
  Error handshake_failed(const Error& error);

  const AttemptContext& context_;
  UniqueFd fd_;
  const bool outgoing_;
  const int32_t peer_;
  const int64_t deadline_ns_;
  HandshakeExchange exchange_;
  Stage stage_;
  bool lost_ = false;
  SocketAddress from_;  // as read while it was connected
  bool welcome_ = false;
  std::array<std::byte, kFrameBytes> frame_{};  // the answer or the verdict
  size_t frame_bytes_ = 0;                      // number of its bytes that were sent or received
};

}  // namespace trestle
