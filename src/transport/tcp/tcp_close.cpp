// The end of a tcp transport. A socket answers with a reset if it is closed while data lies unread in it, or if data
// arrives later. A reset makes the peer's kernel discard what the peer has not read yet. So the last frame is a
// goodbye, then our side is shut, and the peer's data is read until it has answered or closed as well.
#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {

// One step with one peer. True when it is done.
bool TcpTransport::step_close(ClosingPeer& closing) {
  Peer& peer = peers_[closing.rank];
  Link& link = *peer.link;
  while (link.has_output()) {
    const size_t used = link.fill_output(vectors_);
    Result<size_t> sent = send_vectors(peer.fd.get(), std::span(vectors_).first(used));
    if (!sent.ok()) return true;
    if (sent.value() == 0) break;
    link.wrote(sent.value());
  }
  if (!link.has_output() && !closing.ended) {
    end_sending(peer.fd.get());
    closing.ended = true;
  }
  for (;;) {
    Result<size_t> got = receive_bytes(peer.fd.get(), read_buffer_);
    if (!got.ok() || got.value() == kEndOfStream) return true;
    if (got.value() == 0) break;
    if (!link.take(std::span(read_buffer_).first(got.value())).ok()) return true;
  }
  return closing.ended && link.goodbye_answered();
}

// Peers whose acknowledgement has arrived meanwhile get a goodbye like the others.
void TcpTransport::adopt_acknowledged(std::vector<ClosingPeer>& open) {
  const auto settled = [&](Stranger& promised) {
    Attempt& attempt = *promised.attempt;
    if (!attempt.drive().ok()) return true;
    if (attempt.stage() != Attempt::Stage::kWelcomed) return false;
    const int32_t rank = attempt.peer();
    if (peers_[rank].fd) return true;
    adopt(rank, attempt);
    link_of(rank).close(true);
    open.push_back({rank, false});
    return true;
  };
  strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(), settled), strangers_.end());
}

void TcpTransport::linger(int64_t deadline_ns) {
  std::vector<ClosingPeer> open;
  for (const int32_t rank : connected_) open.push_back({rank, false});
  std::vector<pollfd> waits;
  for (;;) {
    adopt_acknowledged(open);
    const auto over = [this](ClosingPeer& closing) { return step_close(closing); };
    open.erase(std::remove_if(open.begin(), open.end(), over), open.end());
    const int64_t left_ns = deadline_ns - monotonic_clock().now_ns();
    if ((open.empty() && strangers_.empty()) || left_ns <= 0) return;
    waits.clear();
    for (const ClosingPeer& closing : open) {
      const Peer& peer = peers_[closing.rank];
      const int events = POLLIN | (peer.link->has_output() ? POLLOUT : 0);
      waits.push_back({peer.fd.get(), static_cast<short>(events), 0});
    }
    for (const Stranger& promised : strangers_) waits.push_back({promised.attempt->fd(), POLLIN, 0});
    (void)::poll(waits.data(), waits.size(), static_cast<int>(left_ns / 1'000'000 + 1));
  }
}

void TcpTransport::close(int linger_ms) {
  if (closed_) return;
  closed_ = true;
  const bool peaceful = linger_ms > 0 && !error_.has_value();
  listener_.fd.reset();
  const auto nobody = [peaceful](const Stranger& s) { return !peaceful || is_stranger(s); };
  strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(), nobody), strangers_.end());
  for (Peer& peer : peers_) {
    peer.attempt.reset();
    if (peer.link != nullptr) peer.link->close(peaceful);
  }
  if (peaceful) linger(monotonic_clock().now_ns() + int64_t{linger_ms} * 1'000'000);
  strangers_.clear();
  for (Peer& peer : peers_) peer.fd.reset();
  connected_.clear();
}

}  // namespace trestle
