// The end of a tcp rail. A socket answers with a reset if it is closed while data lies unread in it, or if data
// arrives later. A reset makes the peer's kernel discard what the peer has not read yet. So the last frame is a
// goodbye, then our side is shut, and the peer's data is read until it has answered or closed as well.
#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {

// One step with one peer. True when it is done.
bool TcpRail::step_close(ClosingPeer& closing) {
  Peer& peer = peers_[closing.rank];
  FrameStream& stream = *peer.stream;
  while (has_output(closing.rank)) {
    const size_t used = stream.fill_output(vectors_, closing.rank, *events_);
    Result<size_t> sent = send_vectors(peer.fd.get(), std::span(vectors_).first(used));
    if (!sent.ok()) return true;
    if (sent.value() == 0) break;
    stream.wrote(sent.value(), closing.rank, *events_);
  }
  if (!has_output(closing.rank) && !closing.ended) {
    end_sending(peer.fd.get());
    closing.ended = true;
  }
  for (;;) {
    Result<size_t> got = receive_bytes(peer.fd.get(), read_buffer_);
    if (!got.ok() || got.value() == kEndOfStream) return true;
    if (got.value() == 0) break;
    if (!stream.take(std::span(read_buffer_).first(got.value()), closing.rank, *events_).ok()) return true;
  }
  return closing.ended && events_->peer(closing.rank).goodbye_answered;
}

// Peers whose acknowledgement has arrived meanwhile get a goodbye like the others.
void TcpRail::adopt_acknowledged(std::vector<ClosingPeer>& open) {
  const auto settled = [&](Stranger& promised) {
    Attempt& attempt = *promised.attempt;
    if (!attempt.drive().ok()) return true;
    if (attempt.stage() != Attempt::Stage::kWelcomed) return false;
    const int32_t rank = attempt.peer();
    if (peers_[rank].fd) return true;
    adopt(rank, attempt);
    open.push_back({rank, false});
    return true;
  };
  strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(), settled), strangers_.end());
}

void TcpRail::linger(int64_t deadline_ns) {
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
      const int events = POLLIN | (has_output(closing.rank) ? POLLOUT : 0);
      waits.push_back({peer.fd.get(), static_cast<short>(events), 0});
    }
    for (const Stranger& promised : strangers_) waits.push_back({promised.attempt->fd(), POLLIN, 0});
    (void)::poll(waits.data(), waits.size(), static_cast<int>(left_ns / 1'000'000 + 1));
  }
}

void TcpRail::close(int linger_ms) {
  if (closed_) return;
  closed_ = true;
  const bool peaceful = linger_ms > 0 && !error_.has_value();
  listener_.fd.reset();
  const auto nobody = [peaceful](const Stranger& s) { return !peaceful || is_stranger(s); };
  strangers_.erase(std::remove_if(strangers_.begin(), strangers_.end(), nobody), strangers_.end());
  for (Peer& peer : peers_) {
    peer.attempt.reset();
    if (peer.stream != nullptr) peer.stream->close();
  }
  if (peaceful) linger(monotonic_clock().now_ns() + int64_t{linger_ms} * 1'000'000);
  strangers_.clear();
  for (Peer& peer : peers_) peer.fd.reset();
  connected_.clear();
}

}  // namespace trestle
