#include "transport/shm/host_sockets.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "transport/auth/strangers.h"
#include "transport/shm/host_channel.h"

namespace trestle {

namespace {

constexpr int kEventsAtOnce = 16;
constexpr int kMostTurns = 16;  // of so many events, in one poll()
constexpr size_t kFramesAtOnce = 256;
// A socket takes more than so many unread ones: 278 with Linux 6's usual buffers.
constexpr size_t kManyFrames = 64;

std::span<const std::byte> bytes_of(const HostFrame& frame) {
  return std::as_bytes(std::span(&frame, 1));
}

}  // namespace

HostKin root_kin(HostMember member) {
  HostKin kin;
  for (int32_t rank = 0; rank < member.ranks; ++rank) kin.ranks.push_back(rank);
  kin.sockets = std::make_shared<HostSockets>(std::move(member));
  return kin;
}

std::string message_of(HostFrame frame, std::span<const std::byte> bytes) {
  frame.bytes = frame.kind == HostFrameKind::kBytes ? bytes.size() : frame.bytes;
  std::string message(reinterpret_cast<const char*>(&frame), sizeof frame);
  return message.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// ---- channels

Status HostSockets::enter(HostChannel& channel) {
  const MutexLock lock(mutex_);
  if (channels_.empty()) TRY(open());
  CHECK(channels_.emplace(channel.id_, &channel).second, "two channels have one name");
  channel.address_ = name_;
  channel.event_fd_ = epoll_.get();
  return {};
}

void HostSockets::leave(HostChannel& channel, std::optional<int64_t> goodbye_ns) {
  const MutexLock lock(mutex_);
  channels_.erase(channel.id_);
  if (channels_.empty()) end(goodbye_ns);
}

Status HostSockets::open() {
  name_ = fresh_unix_name("trestle-shm", member_.job, member_.rank);
  epoll_ = UniqueFd::open([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll_)
    return Error{Code::kSystemError, std::string("cannot make an epoll descriptor: ") + std::strerror(errno)};
  listener_ = TRY(listen_unix(name_));
  return watch(listener_.get(), Source::kListener, 0);
}

// The goodbye waits while a socket is full; it does not wait for a peer that is gone.
void HostSockets::end(std::optional<int64_t> goodbye_ns) {
  const HostFrame goodbye{.kind = HostFrameKind::kGoodbye};
  const auto leave_by = [&](Stream& stream, bool proved) TRESTLE_REQUIRES(mutex_) {
    if (stream.fd && proved && goodbye_ns)
      (void)send_all_before(stream.fd.get(), bytes_of(goodbye), {*goodbye_ns, nullptr});
    drop(stream);
  };
  for (Peer& p : peers_) {
    while (goodbye_ns && !send_waiting(p) && monotonic_clock().now_ns() < *goodbye_ns) (void)::poll(nullptr, 0, 1);
    leave_by(p.out, p.state == State::kReady);
    leave_by(p.in, true);
    p = Peer();
  }
  waiting_ = false;
  // The acknowledgement of a promised one may be on its way: then it counts on this connection.
  for (auto& [serial, stranger] : strangers_)
    leave_by(stranger, claim_of(stranger.handshake()) == StrangerClaim::kPromised);
  strangers_.clear();
  connecting_ = 0;
  pauses_ = false;
  room_ = DescriptorRoom();
  reachable_ = 0;
  listener_.reset();
  epoll_.reset();
}

// A peer whose sockets had ended may have opened new ones.
void HostSockets::set_address(int32_t peer, const std::string& address, const std::string& name) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.name.empty()) p.name = name;
  if (address.empty() || address == p.address) return;
  if (p.address.empty()) {
    ++reachable_;
    p.address = address;
    return;
  }
  if (p.in.fd) read_stream(peer, p.in);
  if (p.state == State::kReady) read_stream(peer, p.out);
  if (p.state == State::kWanted || p.state == State::kProving) --connecting_;
  p.address = address;
  drop(p.out);
  p.waiting.clear();
  p.state = State::kNone;
  p.left = false;
  p.lost = {};
  p.attempts = 0;
}

// For a connection each way with each peer.
void HostSockets::make_room() {
  if (room_.count() >= 2 * reachable_) return;
  room_ = DescriptorRoom(2 * reachable_);
  if (!room_.shortage().empty())
    LOG(kWarn, kShm, "rank %d may not reach all of its %zu peers over shm: %s", member_.rank, reachable_,
        room_.shortage().c_str());
}

Status HostSockets::watch(int fd, Source source, uint32_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(source) << 32 | index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  if (errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return {};
  return Error{Code::kSystemError, std::string("cannot watch a socket: ") + std::strerror(errno)};
}

void HostSockets::drop(Stream& stream) {
  // A forked child may still hold the descriptor, and epoll watches the file and not the descriptor.
  if (stream.fd) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.fd.get(), nullptr);
  stream.fd.reset();
  stream.exchange.reset();
  stream.descriptors.clear();
  stream.in_bytes = 0;
  stream.wanted_bytes = sizeof(HostFrame);
}

// ---- frames

// The kernel takes so little whole or not at all.
Result<bool> HostSockets::send(int32_t peer, const HostFrame& frame, int fd, std::span<const std::byte> bytes) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.state != State::kReady) return false;
  const iovec parts[2] = {{const_cast<HostFrame*>(&frame), sizeof frame},
                          {const_cast<std::byte*>(bytes.data()), bytes.size()}};
  Result<size_t> sent = fd < 0 ? send_vectors(p.out.fd.get(), std::span(parts, bytes.empty() ? 1 : 2))
                               : send_with_descriptors(p.out.fd.get(), bytes_of(frame), std::span(&fd, 1));
  if (!sent.ok()) {
    // The next poll() finds the reason: a goodbye or a death.
    if (sent.error().code == Code::kRemoteError) return false;
    return std::move(sent).error();
  }
  if (sent.value() == 0) return false;
  if (sent.value() != sizeof frame + bytes.size())
    return Error{Code::kSystemError, "a Unix socket took a part of a short message"};
  return true;
}

void HostSockets::wake(int32_t peer, const HostFrame& frame) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.state == State::kReady) {
    (void)send_bytes(p.out.fd.get(), bytes_of(frame));
  } else if (p.in.fd) {
    (void)send_bytes(p.in.fd.get(), bytes_of(frame));
  }
}

// A peer that has not accepted this rank's connection must get them too, so they go both ways. Some hundred frames are
// one message to the kernel: they need little room, and go whole or not at all.
bool HostSockets::send_last(int32_t peer, const std::vector<HostFrame>& frames, size_t& by_out, size_t& by_in) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  const auto go_on = [&](const Stream& stream, size_t& sent) {
    while (stream.fd && sent < frames.size()) {
      const auto some = std::span(frames).subspan(sent, std::min(frames.size() - sent, kFramesAtOnce));
      const Result<size_t> taken = send_bytes(stream.fd.get(), std::as_bytes(some));
      if (!taken.ok()) break;
      if (taken.value() == 0) return false;
      sent += some.size();
    }
    sent = frames.size();
    return true;
  };
  for (; by_out < frames.size() && (p.state == State::kWanted || p.state == State::kProving); ++by_out)
    keep_last(peer, message_of(frames[by_out], {}));
  bool all = p.state != State::kReady || go_on(p.out, by_out);
  all = go_on(p.in, by_in) && all;
  // The acknowledgement of a promised one may be on its way: then it counts on this connection.
  for (auto& [serial, stranger] : strangers_) {
    size_t by_stranger = 0;
    if (stranger.handshake().peer_rank() == peer && claim_of(stranger.handshake()) == StrangerClaim::kPromised)
      (void)go_on(stranger, by_stranger);
  }
  return all;
}

void HostSockets::keep_last(int32_t peer, std::string message) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  const bool may_go = p.state == State::kWanted || p.state == State::kProving || p.state == State::kReady;
  if (!may_go) return;
  p.waiting.push_back(std::move(message));
  waiting_ = true;
}

bool HostSockets::send_waiting(Peer& p) {
  while (p.state == State::kReady && !p.waiting.empty()) {
    const Result<size_t> taken = send_bytes(p.out.fd.get(), std::as_bytes(std::span(p.waiting.front())));
    if (!taken.ok()) {
      p.waiting.clear();
    } else if (taken.value() == 0) {
      return false;
    } else {
      p.waiting.pop_front();
    }
  }
  return true;
}

// Reads what a peer sent on the connection that it made, even if its acknowledgement and all that follows it are still
// unread.
Status HostSockets::read_final_frames(int32_t peer) {
  std::vector<uint32_t> proved;
  for (const auto& [serial, stranger] : strangers_) {
    if (stranger.handshake().peer_proved() && stranger.handshake().peer_rank() == peer) proved.push_back(serial);
  }
  for (const uint32_t serial : proved) TRY(step_stranger(serial));
  read_frames(peer);
  return {};
}

void HostSockets::read_frames(int32_t peer) {
  Stream& in = peers_[static_cast<size_t>(peer)].in;
  if (in.fd) read_stream(peer, in);
}

// An error of one peer's stream is the end of that peer for its users.
void HostSockets::read_stream(int32_t peer, Stream& stream) {
  Result<bool> over = step_frames(peer, stream);
  if (over.ok() && over.value()) {
    const Status status = ended(peer, stream);
    if (status.ok()) return;
    over = status.error();
  }
  if (over.ok()) return;
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (&stream == &p.out && p.state == State::kReady) p.state = State::kOver;
  drop(stream);
  lose(peer, {over.error().code, ": " + over.error().message});
}

Result<bool> HostSockets::step_frames(int32_t peer, Stream& stream) {
  while (stream.fd) {
    const auto rest = std::span(stream.in).subspan(stream.in_bytes, stream.wanted_bytes - stream.in_bytes);
    Result<size_t> got = receive_with_descriptors(stream.fd.get(), rest, stream.descriptors);
    if (!got.ok()) {
      // The peer closed with bytes of ours unread: the same as an end.
      if (got.error().code == Code::kRemoteError) return true;
      return std::move(got).error();
    }
    if (got.value() == kEndOfStream) return true;
    if (got.value() == 0) break;
    stream.in_bytes += got.value();
    if (stream.in_bytes != stream.wanted_bytes) continue;
    TRY(take_frame(peer, stream));
    ++stream.frames;
  }
  // It may have been full, and then no wake of any channel was taken.
  if (std::exchange(stream.frames, 0) >= kManyFrames) ring_all();
  return false;
}

Status HostSockets::take_frame(int32_t peer, Stream& stream) {
  HostFrame frame;
  std::memcpy(&frame, stream.in.data(), sizeof frame);
  const size_t more = frame.kind == HostFrameKind::kBytes ? frame.bytes : 0;
  if (more > kMostFrameBytes) return Error{Code::kRemoteError, "it sent a frame that is too long"};
  stream.wanted_bytes = sizeof frame + more;
  if (stream.in_bytes < stream.wanted_bytes) return {};
  stream.in_bytes = 0;
  stream.wanted_bytes = sizeof frame;
  UniqueFd fd;
  if (!stream.descriptors.empty()) fd = std::move(stream.descriptors.front());
  stream.descriptors.clear();
  // Frames that it sent before a goodbye may lie unread on the other connection.
  const bool is_out = &stream == &peers_[static_cast<size_t>(peer)].out;
  if (frame.kind == HostFrameKind::kGoodbye && is_out) TRY(read_final_frames(peer));
  deliver(peer, frame, std::move(fd), {reinterpret_cast<const char*>(stream.in.data()) + sizeof frame, more});
  return {};
}

// A channel that has ended here says so once more: its goodbye came before the peer was connected.
void HostSockets::deliver(int32_t peer, const HostFrame& frame, UniqueFd fd, std::string bytes) {
  if (frame.channel == 0 && frame.kind == HostFrameKind::kGoodbye) {
    peers_[static_cast<size_t>(peer)].left = true;
    return ring_all();
  }
  const auto found = channels_.find(frame.channel);
  if (found != channels_.end()) {
    return found->second->take({peer, frame, std::move(fd), std::move(bytes)}, found->second != poller_);
  }
  if (frame.kind == HostFrameKind::kGoodbye || frame.kind == HostFrameKind::kWake) return;
  wake(peer, {.kind = HostFrameKind::kGoodbye, .channel = frame.channel});
}

Status HostSockets::ended(int32_t peer, Stream& stream) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (&stream == &p.out && p.state == State::kReady) p.state = State::kOver;
  drop(stream);
  // Its goodbye may still be unread on the other connection.
  if (!p.left) TRY(read_final_frames(peer));
  if (!p.left && p.out.fd && !p.out.exchange) (void)TRY(step_frames(peer, p.out));
  if (!p.left) lose(peer, {Code::kRemoteError, " died: its connection of shared memory ended without a goodbye"});
  return {};
}

// why: follows the peer's name, which each channel has its own of.
void HostSockets::lose(int32_t peer, Error why) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.lost.ok()) p.lost = std::move(why);
  ring_all();
}

void HostSockets::ring_all() {
  for (const auto& [id, channel] : channels_) channel->ring(channel != poller_);
}

// ---- events

Result<bool> HostSockets::poll(const HostChannel& by) {
  poller_ = &by;
  auto any = poll_all();
  poller_ = nullptr;
  return any;
}

Result<bool> HostSockets::poll_all() {
  bool any = false;
  if (pauses_) TRY(watch_listener_again());
  // Strangers may have more to say than peers.
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const int count = TRY(poll_once());
    any |= count > 0;
    if (count < kEventsAtOnce) break;
  }
  if (connecting_ == 0 && !waiting_) return any;
  waiting_ = false;
  for (int32_t peer = 0; peer < member_.ranks; ++peer) {
    Peer& p = peers_[static_cast<size_t>(peer)];
    if (p.state == State::kWanted) TRY(connect(peer));
    (void)send_waiting(p);
    waiting_ = waiting_ || !p.waiting.empty();
  }
  return any;
}

Result<int> HostSockets::poll_once() {
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
        read_frames(static_cast<int32_t>(index));
        break;
    }
  }
  return count;
}

}  // namespace trestle
