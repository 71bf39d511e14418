// The end of a control mesh: waits until the peers' kernels have acknowledged the goodbyes, and ends the connections.
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "base/text/byte_text.h"
#include "control_mesh/control_mesh_impl.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

// A goodbye that is not acknowledged in this time takes another rail.
constexpr int64_t kClosingSilenceNs = 250'000'000;

bool is_broken(int fd) {
  pollfd state{fd, 0, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0;
}

// That the peer's kernel has not acknowledged.
int unsent_bytes(int fd) {
  int unsent = 0;
  return ioctl(fd, SIOCOUTQ, &unsent) == 0 ? unsent : 0;
}

// Reads what the peer still sends to the end first: closing a socket with unread bytes resets the connection, and a
// reset overtakes the goodbye.
void end_socket(ControlLink& link, int epoll) {
  end_sending(link.fd());
  std::vector<ControlFrame> ignored;
  std::string reason;
  link.read(ignored, reason);
  epoll_ctl(epoll, EPOLL_CTL_DEL, link.fd(), nullptr);
}

}  // namespace

// Every link is looked at, also those behind one that is not drained.
bool ControlMesh::Impl::drained() {
  const int64_t now_ns = clock_.now_ns();
  if (streams_ && !streams_->poll().ok()) return true;
  // Nobody waits for a link that was never made. But peers that may count on one hear of the failure.
  if (closing_ns_ == 0 && !met_ && moves_) {
    ControlFrame frame;
    frame.kind = failure_ && failure_->abort ? ControlKind::kAbort : ControlKind::kError;
    if (failure_) frame.payload = encode(FailureReport{failure_->origin, failure_->error});
    if (failure_) moves_->tell(encode(frame, 0));
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].away() && !links_[i].made) end_link(i);
    }
  }
  if (closing_ns_ == 0) closing_ns_ = now_ns;
  tend_moves(true, now_ns);
  bool all = true;
  for (size_t i = 0; i < links_.size(); ++i) all = link_drained(i, now_ns) && all;
  return all;
}

bool ControlMesh::Impl::link_drained(size_t index, int64_t now_ns) {
  ControlLink& link = links_[index];
  if (!link.open()) return link.ended();
  // A peer that closes at the same time waits for this rank to read its goodbye, just as this rank waits for the peer.
  std::vector<ControlFrame> frames;
  std::string reason;
  const ControlLink::Reading reading = link.read(frames, reason);
  for (const ControlFrame& frame : frames) {
    if (frame.kind != ControlKind::kBye || ByteReader(frame.payload).integer<int32_t>() != link.peer()) continue;
    link.bye_came = true;
    left_.insert(link.peer());
  }
  if (reading != ControlLink::Reading::kOpen) {
    // This rank's goodbye may not have arrived.
    const bool goes_on = reading != ControlLink::Reading::kMalformed && can_move(index) && !link.bye_came;
    if (goes_on) move(index, reason, now_ns, now_ns);
    return !goes_on;
  }
  link.flush();
  if (link.owes_ack()) send(index, {ControlKind::kAck, 0, 0, ""});
  const bool moves = can_move(index) && !link.bye_came;
  // A peer that has closed already acknowledges nothing any more, so the kernel's count of unsent bytes stands still.
  if (link.fd() < 0) return !link.has_output();  // the peer's kernel is this one
  if (is_broken(link.fd())) return !moves;
  // The peer's kernel may acknowledge bytes of a connection that the peer gives up at that moment. So on a link that
  // has moved, the peer itself must acknowledge the frames.
  if (!link.has_output() && unsent_bytes(link.fd()) == 0) return !link.moved || !link.keeps_any();
  if (moves && now_ns - closing_ns_ > kClosingSilenceNs && !answers(link, kClosingSilenceNs))
    move(index, "its host did not answer the goodbye", closing_ns_, now_ns);
  return false;
}

void ControlMesh::Impl::end_links() {
  moves_.reset();
  for (ControlLink& link : links_) {
    if (link.away()) link.end();
    if (link.fd() >= 0) end_socket(link, epoll_.get());
    link.hand_over_output();
    link.end();
  }
  if (streams_) streams_->close(0);
}

}  // namespace trestle
