// How pairs of ranks agree on their connection, and how strangers are kept out.
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "transport/auth/strangers.h"
#include "transport/tcp/epoll_key.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

constexpr int kMostTcpAttempts = 5;
// A connection that has proved nothing by then is dropped. Ranks of the job need milliseconds.
constexpr int64_t kStrangerNs = 10'000'000'000;

}  // namespace

Status TcpRail::watch(int fd, uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = key;
  // A connection that was an attempt is in epoll already. Changing its key also reports its present state as a new
  // edge.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return {};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Error{Code::kSystemError, "a connection could not be added to epoll"};
}

Status TcpRail::reach(int32_t rank) {
  if (error_.has_value()) return *error_;
  Peer& peer = peers_[rank];
  if (peer.fd || peer.attempt != nullptr || peer.yielded || peer.in_line) return {};
  peer.in_line = !queue_.begin(rank, monotonic_clock().now_ns());
  return peer.in_line ? Status{} : connect_to(rank);
}

Status TcpRail::connect_those_in_line() {
  while (!queue_.empty()) {
    const std::optional<int32_t> rank = queue_.next(monotonic_clock().now_ns());
    if (!rank) break;
    peers_[*rank].in_line = false;
    TRY(connect_to(*rank));
  }
  return {};
}

// The timer wakes a sleeping thread. Nothing else does when the peers of all attempts are frozen. False: the thread
// must not sleep.
bool TcpRail::arm_timer() {
  const int64_t due_ns = queue_.due_ns();
  if (due_ns == INT64_MAX) return true;
  if (due_ns <= monotonic_clock().now_ns()) return false;
  if (!timer_) {
    timer_ = UniqueFd::open([] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); });
    if (!timer_ || !watch(timer_.get(), epoll_key(EpollKind::kTimer, 0)).ok()) {
      timer_.reset();
      return false;
    }
  }
  itimerspec when{};
  when.it_value = {static_cast<time_t>(due_ns / 1'000'000'000), static_cast<long>(due_ns % 1'000'000'000)};
  return ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0;
}

ConnectFrom TcpRail::from_here(const SocketAddress& to) const {
  if (bound_to_.empty() || to.family() != listener_.address.family()) return {};
  return {listener_.address, is_here(to) ? std::string() : bound_to_};
}

Status TcpRail::connect_to(int32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.address.length == 0) return fail(Code::kInvalidUsage, name(rank) + " has no tcp address");
  ++peer.attempts;
  poll_now_ = true;
  Result<UniqueFd> fd = start_connect(peer.address, from_here(peer.address));
  if (!fd.ok()) return connection_lost(rank, fd.error());
  const int raw = fd.value().get();
  peer.attempt = std::make_unique<Attempt>(context_, std::move(fd).value(), rank);
  if (Status watched = watch(raw, epoll_key(EpollKind::kOutgoing, rank)); !watched.ok())
    return fail(Code::kSystemError, watched.error().message);
  return {};
}

Status TcpRail::drive_outgoing(int32_t rank) {
  Peer& peer = peers_[rank];
  if (peer.attempt == nullptr) return {};
  const Status status = peer.attempt->drive();
  if (!status.ok()) {
    const bool again = peer.attempt->lost() && peer.attempts < kMostTcpAttempts;
    peer.attempt.reset();
    if (again) return connect_to(rank);
    const std::string why =
        "connecting to " + name(rank) + " at " + format_address(peer.address) + " failed: " + status.error().message;
    return lose(rank, Error{status.error().code, why});
  }
  if (peer.attempt->stage() == Attempt::Stage::kWelcomed) {
    const std::unique_ptr<Attempt> attempt = std::move(peer.attempt);
    adopt(rank, *attempt);
  } else if (peer.attempt->stage() == Attempt::Stage::kYielded) {
    peer.attempt.reset();
    peer.yielded = true;
    queue_.answered(rank, monotonic_clock().now_ns());
  }
  return {};
}

void TcpRail::adopt(int32_t rank, Attempt& attempt) {
  Peer& peer = peers_[rank];
  peer.attempt.reset();
  peer.yielded = peer.in_line = false;
  queue_.answered(rank, monotonic_clock().now_ns());
  peer.ours = attempt.outgoing();
  peer.fd = attempt.take_fd();
  events_->connected(rank);
  peer.stream =
      std::make_unique<FrameStream>(frame_check(context_.job, rank, context_.rank),
                                    frame_check(context_.job, context_.rank, rank), events_->peer(rank).in_order);
  // Data that arrived after the handshake may raise no new edge, so both directions are tried at once.
  peer.readable = peer.writable = true;
  peer.unsent = UnsentLimit(static_cast<uint64_t>(context_.options.unsent_bytes));
  connected_.push_back(rank);
  poll_now_ = true;
  if (Status watched = watch(peer.fd.get(), epoll_key(EpollKind::kConnected, rank)); !watched.ok())
    (void)fail(Code::kSystemError, watched.error().message);
  if (!bound_to_.empty() && !is_here(peer_address(peer.fd.get()))) (void)bind_to_interface(peer.fd.get(), bound_to_);
  LOG(kInfo, kNet, "tcp: connected with %s", name(rank).c_str());
}

// Whether the connection of a peer that has just proved itself becomes the pair's. False if the pair has one: then the
// peer began this one before it knew of the other, which is no error.
Result<bool> TcpRail::decide(int32_t rank) {
  if (static_cast<size_t>(rank) >= peers_.size() || rank == context_.rank)
    return Error{Code::kRemoteError,
                 "it proved to be rank " + std::to_string(rank) + ", which is not another rank of this job"};
  const Peer& peer = peers_[rank];
  return !peer.fd && !peer.left && !events_->peer(rank).unsettled && (peer.attempt == nullptr || rank < context_.rank);
}

Status TcpRail::settle(Attempt& attempt) {
  const bool wanted = TRY(decide(attempt.peer()));
  Peer& peer = peers_[attempt.peer()];
  attempt.judge(wanted);
  // From now on this is the pair's connection, unless the peer gives it up. This rank makes no other one before it
  // knows.
  if (wanted) {
    peer.attempt.reset();
    peer.yielded = true;
    peer.in_line = false;
    queue_.answered(attempt.peer(), monotonic_clock().now_ns());
  }
  return attempt.drive();
}

// The peer has given up a connection that this rank has welcomed, before the peer acknowledged it.
void TcpRail::withdraw(int32_t rank) {
  const auto promised = [rank](const Stranger& s) { return s.attempt->promised() && s.attempt->peer() == rank; };
  if (std::any_of(strangers_.begin(), strangers_.end(), promised)) return;
  Peer& peer = peers_[rank];
  peer.yielded = false;
  const RailPeer wants = events_->peer(rank);
  if ((wants.awaited || wants.sending) && !peer.fd && peer.attempt == nullptr) (void)reach(rank);
}

void TcpRail::refuse(const Attempt& attempt, const std::string& reason) {
  if (logged_.first(format_host(attempt.from()) + reason))
    LOG(kWarn, kNet, "tcp: refused a connection from %s to %s: %s", format_address(attempt.from()).c_str(),
        address_.c_str(), reason.c_str());
}

// A connection ended without an error in what it sent. A peer does that with its own connection when it has accepted
// this rank's meanwhile: once, with a whole hello or none. (A connection without any data may also be a port scan.)
void TcpRail::lose_stranger(const Attempt& attempt, const std::string& reason) {
  const int32_t claimed = attempt.peer();
  if (attempt.half() && claimed >= 0 && static_cast<size_t>(claimed) < peers_.size()) {
    Peer& peer = peers_[claimed];
    const bool met = peer.attempt != nullptr || peer.ours;
    if (!met || peer.gave_up) return refuse(attempt, reason);
    peer.gave_up = true;
  } else if (attempt.half()) {
    return refuse(attempt, reason);
  }
  LOG(kTrace, kNet, "tcp: a connection ended before its handshake: %s", reason.c_str());
}

void TcpRail::drive_stranger(uint32_t serial) {
  const auto stranger =
      std::find_if(strangers_.begin(), strangers_.end(), [serial](const Stranger& s) { return s.serial == serial; });
  if (stranger == strangers_.end()) return;  // dropped meanwhile
  Attempt& attempt = *stranger->attempt;
  Status status = attempt.drive();
  if (status.ok() && attempt.stage() == Attempt::Stage::kJudge) status = settle(attempt);
  if (!status.ok()) {
    const int32_t promised = attempt.promised() ? attempt.peer() : -1;
    if (attempt.lost()) {
      lose_stranger(attempt, status.error().message);
    } else {
      refuse(attempt, status.error().message);
    }
    strangers_.erase(stranger);
    if (promised >= 0) withdraw(promised);
  } else if (attempt.stage() == Attempt::Stage::kWelcomed) {
    if (!peers_[attempt.peer()].fd) adopt(attempt.peer(), attempt);
    strangers_.erase(stranger);
  } else if (attempt.stage() == Attempt::Stage::kYielded) {
    strangers_.erase(stranger);
  }
}

// A failure does not affect the other connections. Connections that wait in the queue raise no new edge.
void TcpRail::accept_strangers() {
  const int64_t now_ns = monotonic_clock().now_ns();
  accept_again_ = true;
  if (admission_.pauses(now_ns)) return;
  const Status taken = admission_.take(listener_.fd.get(), now_ns, [&](UniqueFd fd) { admit(std::move(fd), now_ns); });
  accept_again_ = !taken.ok() || admission_.more_wait();
  if (!taken.ok() && logged_.first(taken.error().message)) LOG(kWarn, kNet, "tcp: %s", taken.error().message.c_str());
}

void TcpRail::admit(UniqueFd fd, int64_t now_ns) {
  const auto last = find_stranger_to_drop(strangers_, peers_.size() + kMoreStrangers,
                                          [](const Stranger& s) { return s.attempt->claim(); });
  if (last != strangers_.end()) {
    refuse(*last->attempt, kNoRoomForStrangers);
    strangers_.erase(last);
  }
  const uint32_t serial = next_serial_++;
  if (!watch(fd.get(), epoll_key(EpollKind::kStranger, serial)).ok()) return;
  strangers_.push_back({serial, std::make_unique<Attempt>(context_, std::move(fd), now_ns + kStrangerNs)});
  drive_stranger(serial);
}

void TcpRail::drop_late_strangers() {
  if (strangers_.empty()) return;
  const int64_t now_ns = monotonic_clock().now_ns();
  for (;;) {
    const auto oldest = std::find_if(strangers_.begin(), strangers_.end(), is_stranger);
    if (oldest == strangers_.end() || oldest->attempt->deadline_ns() >= now_ns) return;
    refuse(*oldest->attempt, kStrangerIsLate);
    strangers_.erase(oldest);
  }
}

}  // namespace trestle
