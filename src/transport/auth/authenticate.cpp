#include "transport/auth/authenticate.h"

#include <poll.h>

namespace trestle {

Status authenticate(int fd, Handshake& handshake, const WaitLimit& limit) {
  std::array<std::byte, kHelloBytes> buffer;
  while (!handshake.done()) {
    if (!handshake.outgoing().empty()) {
      TRY(send_all_before(fd, handshake.outgoing(), limit));
      handshake.sent(handshake.outgoing().size());
      continue;
    }
    const size_t got = TRY(receive_bytes(fd, std::span(buffer).first(handshake.wanted())));
    if (got == kEndOfStream)
      return Error{Code::kRemoteError,
                   "the peer closed the connection before it had proved that it belongs to the job"};
    if (got == 0) {
      TRY(wait_before(fd, POLLIN, limit));
      continue;
    }
    Status status = handshake.received(std::span(buffer).first(got));
    if (!status.ok()) {
      if (!handshake.outgoing().empty()) (void)send_bytes(fd, handshake.outgoing());
      return status;
    }
  }
  return {};
}

}  // namespace trestle
