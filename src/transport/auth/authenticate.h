// The handshake over a socket, blocking with a time limit: for bootstrap's connections. Transports drive their
// handshakes from epoll.
#pragma once

#include "base/result.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

// Runs `handshake` over the connected stream `fd` to its end. Errors: those of the handshake or the socket. On failure
// the peer is told the reason if that does not block. The caller closes the descriptor.
Status authenticate(int fd, Handshake& handshake, const WaitLimit& limit);

}  // namespace trestle
