#include "transport/shm/host_channel.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "transport/auth/handshake.h"

namespace trestle {
namespace {

uint64_t channel_number(const std::string& name) {
  const auto digest = job_id("channel " + name);
  uint64_t number;
  std::memcpy(&number, digest.data(), sizeof number);
  return number | 1;  // 0 means the connections themselves
}

}  // namespace

HostChannel::HostChannel(const HostKin& kin, uint64_t id, int32_t rank, HostChannelEvents& events)
    : sockets_(kin.sockets), id_(id), rank_(rank), events_(events), peers_(kin.ranks.size()) {
  rank_of_.assign(static_cast<size_t>(sockets_->member_.ranks), -1);
  for (size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].at = kin.ranks[r];
    peers_[r].name = "rank " + std::to_string(r);
    rank_of_[static_cast<size_t>(kin.ranks[r])] = static_cast<int32_t>(r);
  }
}

Result<std::unique_ptr<HostChannel>> HostChannel::open(const HostKin& kin, const std::string& name, int32_t rank,
                                                       HostChannelEvents& events) {
  std::unique_ptr<HostChannel> channel(new HostChannel(kin, channel_number(name), rank, events));
  TRY(kin.sockets->enter(*channel));
  channel->open_ = true;
  return channel;
}

HostChannel::~HostChannel() {
  if (open_) sockets_->leave(*this, std::nullopt);
}

void HostChannel::set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& names) {
  const MutexLock lock(sockets_->mutex_);
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (i < names.size() && !names[i].empty()) peers_[i].name = names[i];
    if (i < addresses.size()) sockets_->set_address(peers_[i].at, addresses[i], peers_[i].name);
  }
  sockets_->make_room();
}

void HostChannel::on_arrival(std::function<void()> ring) {
  const MutexLock lock(sockets_->mutex_);
  ring_ = std::move(ring);
  alone_.reset();
  bell_.reset();
}

Status HostChannel::wait_alone() {
  UniqueFd bell = UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  UniqueFd alone = UniqueFd::open([] { return epoll_create1(EPOLL_CLOEXEC); });
  for (const int fd : {bell.get(), event_fd_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(alone.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return Error{Code::kSystemError, "no open file is left to wait with (limit of open files: ulimit -n)"};
  }
  on_arrival([fd = bell.get()] { (void)eventfd_write(fd, 1); });
  bell_ = std::move(bell);
  alone_ = std::move(alone);
  return {};
}

Status HostChannel::want(int32_t peer) {
  Peer& p = at(peer);
  if (p.wanted || p.left) return {};
  p.wanted = p.used = true;
  ++connecting_;
  Status begun;
  {
    const MutexLock lock(sockets_->mutex_);
    begun = sockets_->want(p.at);
  }
  if (!begun.ok()) return Error{begun.error().code, p.name + begun.error().message};
  rung_.store(true, std::memory_order_seq_cst);  // it may have left before this channel used it
  return announce();
}

bool HostChannel::wants_poll() const {
  if (rung_.load(std::memory_order_seq_cst)) return true;
  if (connecting_ == 0) return false;
  const MutexLock lock(sockets_->mutex_);
  return std::ranges::any_of(sockets_->peers_,
                             [](const auto& peer) { return peer.state == HostSockets::State::kWanted; });
}

Result<bool> HostChannel::send(int32_t peer, HostFrame frame, int fd, std::span<const std::byte> bytes) {
  frame.channel = id_;
  const MutexLock lock(sockets_->mutex_);
  return sockets_->send(at(peer).at, frame, fd, bytes);
}

void HostChannel::wake(int32_t peer) {
  const MutexLock lock(sockets_->mutex_);
  sockets_->wake(at(peer).at, {.channel = id_});
}

void HostChannel::take(Arrived arrived, bool by_other) {
  arrived.peer = rank_of_[static_cast<size_t>(arrived.peer)];
  if (arrived.peer < 0 || arrived.peer == rank_) return;  // that rank has no part in this channel
  if (arrived.frame.kind != HostFrameKind::kWake) inbox_.push_back(std::move(arrived));
  ring(by_other);
}

void HostChannel::ring(bool by_other) {
  rung_.store(true, std::memory_order_seq_cst);  // before the sleepers are counted
  if (by_other && ring_) ring_();
}

Result<bool> HostChannel::poll() {
  eventfd_t count;
  if (bell_) (void)eventfd_read(bell_.get(), &count);
  std::deque<Arrived> arrived;
  bool any = false;
  bool rung = false;
  {
    const MutexLock lock(sockets_->mutex_);
    any = TRY(sockets_->poll(*this));
    arrived.swap(inbox_);
    rung = rung_.exchange(false, std::memory_order_seq_cst);
  }
  if (connecting_ != 0) TRY(announce());
  any |= !arrived.empty();
  TRY(handle(std::move(arrived)));
  if (rung) TRY(look_for_ends());
  return any;
}

// Frames of other peers stay for poll().
Status HostChannel::read_frames(int32_t peer) {
  std::deque<Arrived> arrived;
  {
    const MutexLock lock(sockets_->mutex_);
    sockets_->read_frames(at(peer).at);
    std::deque<Arrived> others;
    for (Arrived& one : inbox_) (one.peer == peer ? arrived : others).push_back(std::move(one));
    inbox_.swap(others);
  }
  return handle(std::move(arrived));
}

Status HostChannel::announce() {
  for (int32_t peer = 0; peer < static_cast<int32_t>(peers_.size()); ++peer) {
    Peer& p = at(peer);
    if (!p.wanted || p.ready || p.left) continue;
    {
      const MutexLock lock(sockets_->mutex_);
      p.ready = sockets_->peer(p.at).state == HostSockets::State::kReady;
    }
    if (!p.ready) continue;
    --connecting_;
    TRY(events_.on_ready(peer));
  }
  return {};
}

Status HostChannel::handle(std::deque<Arrived> arrived) {
  for (Arrived& one : arrived) {
    at(one.peer).used = true;
    if (one.frame.kind == HostFrameKind::kGoodbye) {
      leave(at(one.peer));
    } else if (one.frame.kind == HostFrameKind::kBytes) {
      TRY(events_.on_bytes(one.peer, one.frame, std::move(one.bytes)));
    } else {
      TRY(events_.on_frame(one.peer, one.frame, std::move(one.fd)));
    }
  }
  return {};
}

void HostChannel::leave(Peer& peer) {
  if (!peer.left && peer.wanted && !peer.ready) --connecting_;
  left_count_ += peer.left ? 0 : 1;
  peer.left = true;
}

// Of a peer that this channel does not use, it is no concern.
Status HostChannel::look_for_ends() {
  for (int32_t peer = 0; peer < static_cast<int32_t>(peers_.size()); ++peer) {
    Peer& p = at(peer);
    if (!p.used || p.left) continue;
    Status lost;
    bool left = false;
    {
      const MutexLock lock(sockets_->mutex_);
      left = sockets_->peer(p.at).left;
      lost = sockets_->peer(p.at).lost;
    }
    if (left) leave(p);
    if (!left && !lost.ok()) TRY(events_.on_lost(peer, {lost.error().code, p.name + lost.error().message}));
  }
  return {};
}

void HostChannel::add_final_bytes(int32_t peer, uint64_t stream, std::span<const std::byte> bytes) {
  for (size_t at_byte = 0; at_byte < bytes.size(); at_byte += kMostFrameBytes) {
    const auto some = bytes.subspan(at_byte, std::min(bytes.size() - at_byte, kMostFrameBytes));
    const HostFrame frame{.kind = HostFrameKind::kBytes, .channel = id_, .id = stream};
    at(peer).final_messages.push_back(message_of(frame, some));
  }
}

// The last bytes of a stream go in order, with the goodbye behind them, so all of them go one way.
void HostChannel::close(int64_t deadline_ns) {
  if (!open_) return;
  open_ = false;
  struct Last {
    int32_t at;
    std::vector<HostFrame> frames;
    size_t by_out = 0;
    size_t by_in = 0;
  };
  std::vector<Last> last;
  for (Peer& p : peers_) {
    if (p.at == peers_[static_cast<size_t>(rank_)].at) continue;
    for (HostFrame& frame : p.final_frames) frame.channel = id_;
    p.final_frames.push_back({.kind = HostFrameKind::kGoodbye, .channel = id_});
    if (!p.final_messages.empty()) {
      const MutexLock lock(sockets_->mutex_);
      for (std::string& message : p.final_messages) sockets_->keep_last(p.at, std::move(message));
      for (const HostFrame& frame : p.final_frames) sockets_->keep_last(p.at, message_of(frame, {}));
      continue;
    }
    last.push_back({p.at, std::move(p.final_frames)});
  }
  for (bool all = false; !all;) {
    all = true;
    {
      const MutexLock lock(sockets_->mutex_);
      (void)sockets_->poll(*this);  // a peer that closes, too, waits for this rank to read
      for (Last& one : last) all = sockets_->send_last(one.at, one.frames, one.by_out, one.by_in) && all;
      const bool late = monotonic_clock().now_ns() >= deadline_ns;
      for (const Last& one : last) {
        for (size_t i = one.by_out; late && i < one.frames.size(); ++i)
          sockets_->keep_last(one.at, message_of(one.frames[i], {}));
      }
      if (late) break;
    }
    if (!all) (void)::poll(nullptr, 0, 1);
  }
  sockets_->leave(*this, deadline_ns);
  on_arrival({});
  event_fd_ = -1;
}

}  // namespace trestle
