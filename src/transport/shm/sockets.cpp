#include "transport/shm/sockets.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "transport/auth/strangers.h"
#include "transport/socket/socket.h"

namespace trestle {

namespace {

constexpr int kEventsAtOnce = 16;
constexpr int kMostTurns = 16;  // of so many events, in one poll()

}  // namespace

Result<std::unique_ptr<ShmSockets>> ShmSockets::create(const EndpointConfig& config, ShmSocketEvents& events) {
  std::unique_ptr<ShmSockets> sockets(new ShmSockets(config, events));
  sockets->peers_.resize(static_cast<size_t>(config.ranks));
  sockets->name_ = fresh_unix_name("trestle-shm", config.job, config.rank);
  sockets->epoll_ = UniqueFd::open([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!sockets->epoll_) {
    return Error{Code::kSystemError, std::string("cannot make an epoll descriptor: ") + std::strerror(errno)};
  }
  sockets->listener_ = TRY(listen_unix(sockets->name_));
  TRY(sockets->watch(sockets->listener_.get(), Source::kListener, 0));
  return sockets;
}

Credentials ShmSockets::credentials() const {
  return {config_.secret, job_id(config_.job), config_.rank};
}

void ShmSockets::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& names) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (i < addresses.size()) peers_[i].address = addresses[i];
    peers_[i].name = i < names.size() && !names[i].empty() ? names[i] : "rank " + std::to_string(i);
  }
  const auto reachable = std::ranges::count_if(peers_, [](const Peer& peer) { return !peer.address.empty(); });
  room_ = DescriptorRoom(2 * static_cast<size_t>(reachable));  // each rank of a pair connects
  if (!room_.shortage().empty())
    LOG(kWarn, kShm, "rank %d may not reach all of its %zd peers over shm: %s", config_.rank, reachable,
        room_.shortage().c_str());
}

Status ShmSockets::watch(int fd, Source source, uint32_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(source) << 32 | index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  if (errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return {};
  return Error{Code::kSystemError, std::string("cannot watch a socket: ") + std::strerror(errno)};
}

void ShmSockets::drop(Stream& stream) {
  // A forked child may still hold the descriptor, and epoll watches the file and not the descriptor.
  if (stream.fd) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.fd.get(), nullptr);
  stream.fd.reset();
  stream.exchange.reset();
  stream.descriptors.clear();
  stream.in_bytes = 0;
}

// Reads what a peer sent on the connection that it made, even if its acknowledgement and all that follows it are still
// unread.
Status ShmSockets::read_final_frames(int32_t peer) {
  std::vector<uint32_t> proved;
  for (const auto& [serial, stranger] : strangers_) {
    if (stranger.handshake().peer_proved() && stranger.handshake().peer_rank() == peer) proved.push_back(serial);
  }
  for (const uint32_t serial : proved) TRY(step_stranger(serial));
  return read_frames(peer);
}

Status ShmSockets::read_frames(int32_t peer) {
  Stream& in = peers_[peer].in;
  if (in.fd && TRY(step_frames(peer, in))) return ended(peer, in);
  return {};
}

Result<bool> ShmSockets::step_frames(int32_t peer, Stream& stream) {
  while (stream.fd) {
    const std::span<std::byte> rest = std::span(stream.in).subspan(stream.in_bytes);
    Result<size_t> got = receive_with_descriptors(stream.fd.get(), rest, stream.descriptors);
    if (!got.ok()) {
      // The peer closed with bytes of ours unread: the same as an end.
      if (got.error().code == Code::kRemoteError) return true;
      return std::move(got).error();
    }
    if (got.value() == 0) return false;
    if (got.value() == kEndOfStream) return true;
    stream.in_bytes += got.value();
    if (stream.in_bytes < sizeof(ShmFrame)) continue;
    ShmFrame frame;
    std::memcpy(&frame, stream.in.data(), sizeof frame);
    stream.in_bytes = 0;
    UniqueFd fd;
    if (!stream.descriptors.empty()) fd = std::move(stream.descriptors.front());
    stream.descriptors.clear();
    if (frame.kind == ShmFrameKind::kGoodbye) {
      // Frames that it sent before may lie unread on the other connection.
      if (&stream == &peers_[peer].out) TRY(read_final_frames(peer));
      peers_[peer].left = true;
    } else if (frame.kind != ShmFrameKind::kWake) {
      TRY(events_.on_frame(peer, frame, std::move(fd)));
    }
  }
  return false;
}

Status ShmSockets::ended(int32_t peer, Stream& stream) {
  Peer& p = peers_[peer];
  if (&stream == &p.out && p.state == State::kReady) p.state = State::kOver;
  drop(stream);
  // Its goodbye may still be unread on the other connection.
  if (!p.left) TRY(read_final_frames(peer));
  if (!p.left && p.out.fd && !p.out.exchange) (void)TRY(step_frames(peer, p.out));
  if (p.left) return {};
  return Error{Code::kRemoteError, p.name + " died: its connection of shared memory ended without a goodbye"};
}

Result<bool> ShmSockets::send(int32_t peer, const ShmFrame& frame, int fd) {
  Peer& p = peers_[peer];
  if (p.state != State::kReady) return false;
  const auto data = std::as_bytes(std::span(&frame, 1));
  Result<size_t> sent =
      fd < 0 ? send_bytes(p.out.fd.get(), data) : send_with_descriptors(p.out.fd.get(), data, std::span(&fd, 1));
  if (!sent.ok()) {
    // The next poll() finds the reason: a goodbye or a death.
    if (sent.error().code == Code::kRemoteError) return false;
    return std::move(sent).error();
  }
  if (sent.value() == 0) return false;
  if (sent.value() != sizeof frame) return Error{Code::kSystemError, "a Unix socket took a part of a short message"};
  return true;
}

void ShmSockets::wake(int32_t peer) {
  Peer& p = peers_[peer];
  const ShmFrame frame{};
  const auto data = std::as_bytes(std::span(&frame, 1));
  if (p.state == State::kReady) {
    (void)send_bytes(p.out.fd.get(), data);
  } else if (p.in.fd) {
    (void)send_bytes(p.in.fd.get(), data);
  }
}

Result<bool> ShmSockets::poll() {
  bool any = false;
  if (pauses_) TRY(watch_listener_again());
  // Strangers may have more to say than peers.
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const int count = TRY(poll_once());
    any |= count > 0;
    if (count < kEventsAtOnce) break;
  }
  if (connecting_ != 0) {
    for (int32_t peer = 0; peer < config_.ranks; ++peer) {
      if (peers_[peer].state == State::kWanted) TRY(connect(peer));
    }
  }
  return any;
}

Result<int> ShmSockets::poll_once() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<uint32_t>(events[i].data.u64);
    switch (static_cast<Source>(events[i].data.u64 >> 32)) {
      case Source::kListener:
        TRY(accept_some());
        break;
      case Source::kStranger:
        TRY(step_stranger(index));
        break;
      case Source::kOut:
        TRY(step_out(static_cast<int32_t>(index)));
        break;
      case Source::kIn:
        TRY(read_frames(static_cast<int32_t>(index)));
        break;
    }
  }
  return count;
}

// The frames are one message to the kernel, so that they need little room. Waits while the socket is full; does not
// wait for a peer that is gone.
void ShmSockets::say_goodbye(const Stream& stream, const std::vector<ShmFrame>& final_frames, int64_t deadline_ns) {
  if (!stream.fd) return;
  std::vector<ShmFrame> frames = final_frames;
  frames.push_back({.kind = ShmFrameKind::kGoodbye});
  (void)send_all_before(stream.fd.get(), std::as_bytes(std::span(frames)), {deadline_ns, nullptr});
}

void ShmSockets::close(int64_t deadline_ns) {
  for (Peer& p : peers_) {
    if (p.state == State::kReady) say_goodbye(p.out, p.final_frames, deadline_ns);
    say_goodbye(p.in, p.final_frames, deadline_ns);
    p.state = State::kOver;
    drop(p.out);
    drop(p.in);
  }
  for (auto& [serial, stranger] : strangers_) {
    // Its acknowledgement may be on its way: then it counts on this connection.
    if (claim_of(stranger.handshake()) == StrangerClaim::kPromised) say_goodbye(stranger, {}, deadline_ns);
    drop(stranger);
  }
  strangers_.clear();
  connecting_ = 0;
  listener_.reset();
}

}  // namespace trestle
