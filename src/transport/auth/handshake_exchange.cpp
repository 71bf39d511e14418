#include "transport/auth/handshake_exchange.h"

#include <poll.h>

#include <array>
#include <span>
#include <utility>

namespace trestle {

Result<bool> HandshakeExchange::step(int fd) {
  while (!handshake_.done()) {
    if (!TRY(move(fd))) return false;
  }
  return true;
}

Result<bool> HandshakeExchange::step_to_proof(int fd) {
  while (!proved()) {
    if (!TRY(move(fd))) return false;
  }
  return true;
}

Status HandshakeExchange::run_before(int fd, const WaitLimit& limit) {
  while (!TRY(step(fd))) TRY(wait_before(fd, awaited_event(), limit));
  return {};
}

short HandshakeExchange::awaited_event() const {
  return handshake_.outgoing().empty() ? POLLIN : POLLOUT;
}

// What an initiator has to send then is its acknowledgement.
bool HandshakeExchange::proved() const {
  return handshake_.peer_proved() && (role_ == Role::kInitiator || handshake_.outgoing().empty());
}

// Sends or receives once. False: the socket would block.
Result<bool> HandshakeExchange::move(int fd) {
  return handshake_.outgoing().empty() ? receive(fd) : send(fd);
}

Result<bool> HandshakeExchange::send(int fd) {
  Result<size_t> sent = send_bytes(fd, handshake_.outgoing());
  connection_lost_ = !sent.ok();
  if (!sent.ok()) return std::move(sent).error();
  handshake_.sent(sent.value());
  return sent.value() > 0;
}

Result<bool> HandshakeExchange::receive(int fd) {
  std::array<std::byte, kHelloBytes> buffer;
  Result<size_t> got = receive_bytes(fd, std::span(buffer).first(handshake_.wanted()));
  connection_lost_ = !got.ok() || got.value() == kEndOfStream;
  if (!got.ok()) return std::move(got).error();
  if (connection_lost_) return Error{Code::kRemoteError, "the peer closed the connection during the handshake"};
  if (got.value() == 0) return false;
  heard_ = true;
  Status status = handshake_.received(std::span(buffer).first(got.value()));
  if (status.ok()) return true;
  if (!handshake_.outgoing().empty()) (void)send_bytes(fd, handshake_.outgoing());
  return std::move(status).error();
}

}  // namespace trestle
