// The handshake over a socket, blocking until a moment: for bootstrap's connections. Transports drive theirs from
// epoll.
#pragma once

#include "base/result.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

// Runs `handshake` over the connected stream `fd` to its end. The error is the handshake's, or the socket's. On failure
// the peer is told the reason if that does not block; the caller closes the descriptor.
Status authenticate(int fd, Handshake& handshake, const WaitLimit& limit);

}  // namespace trestle
