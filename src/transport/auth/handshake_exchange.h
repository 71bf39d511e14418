// HandshakeExchange: a Handshake and the socket calls that carry it. All code that does a handshake over a stream
// socket steps this class.
//
// A value owned by the connection's owner, who also owns the socket; one thread. Only run_before() blocks. It reads the
// bytes of the handshake and no byte after them. It writes the bytes of the handshake only. The messages are those of
// handshake.h; the parts of them that are not yet sent or complete are kept from step to step.
//
// Errors: those of the handshake; kRemoteError when the peer closes the connection first; those of the socket. An error
// is final: the owner closes the socket and does not step again. Before a handshake's error is returned, the peer is
// sent the reason if that does not block.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

class HandshakeExchange {
 public:
  // The arguments of Handshake.
  HandshakeExchange(Role role, Purpose purpose, const Credentials& credentials,
                    std::optional<int32_t> expected_peer_rank = std::nullopt,
                    std::optional<Purpose> or_for = std::nullopt)
      : role_(role), handshake_(role, purpose, credentials, expected_peer_rank, or_for) {}

  // Sends and receives until the handshake is done (true) or the socket would block (false). `fd` is connected and
  // nonblocking. A step after the end does nothing.
  Result<bool> step(int fd);
  // step(), but true as soon as the peer has proved itself and an acceptor has sent its proof. The acknowledgement is
  // left to step(). So an initiator can first read what follows the acceptor's proof, and an acceptor can first write
  // that.
  Result<bool> step_to_proof(int fd);
  // Steps until the handshake is done. Also kTimeout and kAborted, at the limit: a later step goes on.
  Status run_before(int fd, const WaitLimit& limit);

  // What the next step waits for: POLLOUT while something is to be sent, else POLLIN.
  short awaited_event() const;
  // After a failure: the connection broke or ended. Nothing that the peer sent was wrong.
  bool connection_lost() const { return connection_lost_; }
  // The peer has sent at least one byte.
  bool heard() const { return heard_; }
  // Who the peer is, and how far the handshake has got.
  const Handshake& handshake() const { return handshake_; }

 private:
  bool proved() const;
  Result<bool> move(int fd);
  Result<bool> send(int fd);
  Result<bool> receive(int fd);

  const Role role_;
  Handshake handshake_;
  bool connection_lost_ = false;
  bool heard_ = false;
};

}  // namespace trestle
