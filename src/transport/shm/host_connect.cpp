// How sockets are made: connecting to peers, and admitting strangers that connect.
#include <poll.h>
#include <sys/epoll.h>

#include <utility>

#include "base/clock.h"
#include "transport/auth/strangers.h"
#include "transport/shm/host_channel.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

// The peer may have dropped a connection for lack of room before the hello arrived.
constexpr int kMostAttempts = 5;

// True: the handshake is done. False: more is awaited.
Result<bool> step_handshake(HandshakeExchange& exchange, int fd) {
  const bool done = TRY(exchange.step(fd));
  // A few bytes on a fresh socket must fit. If they did not, no event would follow: only input is watched.
  if (!done && exchange.awaited_event() != POLLIN) return Error{Code::kSystemError, "a fresh socket takes no bytes"};
  return done;
}

void warn_of_refusal(OncePerKey& warned, const std::string& reason) {
  if (warned.first(reason)) LOG(kWarn, kShm, "shared memory: a connection was refused: %s", reason.c_str());
}

}  // namespace

Status HostSockets::want(int32_t peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  // The system may grant now what it has refused before.
  if (p.state == State::kNone) p.lost = {};
  if (!p.lost.ok()) return p.lost;
  if (p.state != State::kNone || p.left) return {};
  if (p.address.empty()) return Error{Code::kInvalidUsage, " has no address for shared memory"};
  p.state = State::kWanted;
  ++connecting_;
  return connect(peer);
}

Status HostSockets::connect(int32_t peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  Result<UniqueFd> fd = connect_unix(p.address);
  if (!fd.ok()) return out_failed(peer, fd.error());
  if (!fd.value()) return {};  // the peer's queue is full: the next poll() tries again
  if (!peer_has_same_user(fd.value().get())) {
    return out_failed(peer, {Code::kRemoteError, "the process that listens there belongs to another user"});
  }
  ++p.attempts;
  p.out.fd = std::move(fd).value();
  p.out.exchange = std::make_unique<HandshakeExchange>(Role::kInitiator, Purpose::kShm, credentials_, peer);
  p.state = State::kProving;
  TRY(watch(p.out.fd.get(), Source::kOut, static_cast<uint32_t>(peer)));
  return step_out(peer);
}

// A connection that this rank wanted could not be made. If the peer has only left, what it sent before is still valid.
Status HostSockets::out_failed(int32_t peer, const Error& error) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.state == State::kWanted || p.state == State::kProving) --connecting_;
  p.state = State::kOver;
  p.waiting.clear();
  drop(p.out);
  TRY(read_final_frames(peer));
  const Code code = error.code == Code::kSystemError ? error.code : Code::kRemoteError;
  if (!p.left) lose(peer, {code, " cannot be reached over shared memory: " + error.message});
  if (code == Code::kSystemError) p.state = State::kNone;
  return {};
}

Status HostSockets::step_out(int32_t peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.state != State::kProving) {
    if (p.out.fd) read_stream(peer, p.out);
    return {};
  }
  Result<bool> done = step_handshake(*p.out.exchange, p.out.fd.get());
  if (!done.ok()) {
    const bool unheard = p.out.exchange->connection_lost() && p.out.handshake().peer_rank() < 0;
    if (!unheard || p.attempts >= kMostAttempts) return out_failed(peer, done.error());
    drop(p.out);
    p.state = State::kWanted;
    return connect(peer);
  }
  if (!done.value()) return {};
  p.out.exchange.reset();
  p.state = State::kReady;
  --connecting_;
  (void)send_waiting(p);
  ring_all();
  return {};
}

// After a failure the listener stays readable, and would wake a sleeping thread again and again.
Status HostSockets::accept_some() {
  std::vector<UniqueFd> callers;
  const Status taken = admission_.take(listener_.get(), monotonic_clock().now_ns(),
                                       [&](UniqueFd fd) { callers.push_back(std::move(fd)); });
  for (UniqueFd& caller : callers) TRY(admit(std::move(caller)));
  if (taken.ok()) return {};
  if (warned_.first("accept")) LOG(kWarn, kShm, "shared memory: %s", taken.error().message.c_str());
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  pauses_ = true;
  return {};
}

Status HostSockets::watch_listener_again() {
  if (admission_.pauses(monotonic_clock().now_ns())) return {};
  pauses_ = false;
  return watch(listener_.get(), Source::kListener, 0);
}

Status HostSockets::admit(UniqueFd fd) {
  if (!peer_has_same_user(fd.get())) {
    warn_of_refusal(warned_, "it belongs to a process of another user");
    return {};
  }
  const auto last = find_stranger_to_drop(strangers_, peers_.size() + kMoreStrangers,
                                          [](const auto& s) { return claim_of(s.second.handshake()); });
  if (last != strangers_.end()) {
    refuse(last->second, {Code::kRemoteError, kNoRoomForStrangers});
    drop(last->second);
    strangers_.erase(last);
  }
  // The stranger is complete before it enters the list: memory may run out at any of these lines.
  Stream stranger;
  stranger.exchange = std::make_unique<HandshakeExchange>(Role::kAcceptor, Purpose::kShm, credentials_);
  stranger.fd = std::move(fd);
  const int watched = stranger.fd.get();
  const uint32_t serial = next_serial_++;
  strangers_.emplace(serial, std::move(stranger));
  TRY(watch(watched, Source::kStranger, serial));
  return step_stranger(serial);
}

// A stranger that disconnects while this rank has a connection of its own with the claimed peer is mostly that peer,
// which has left.
void HostSockets::refuse(const Stream& stranger, const Error& error) {
  const int32_t claimed = stranger.handshake().peer_rank();
  const auto is_known = [&]() TRESTLE_REQUIRES(mutex_) {
    const State state = peers_[static_cast<size_t>(claimed)].state;
    return state == State::kReady || state == State::kOver;
  };
  const bool has_left =
      is_other_rank(claimed) && error.code == Code::kRemoteError && stranger.exchange->connection_lost() && is_known();
  if (has_left) {
    LOG(kInfo, kShm, "shm: %s ended its connection within the handshake",
        peers_[static_cast<size_t>(claimed)].name.c_str());
  } else {
    warn_of_refusal(warned_, error.message);
  }
}

Status HostSockets::step_stranger(uint32_t serial) {
  const auto found = strangers_.find(serial);
  if (found == strangers_.end()) return {};  // dropped meanwhile
  Stream& stranger = found->second;
  const Result<bool> done = step_handshake(*stranger.exchange, stranger.fd.get());
  if (done.ok() && !done.value()) return {};
  const int32_t peer = stranger.handshake().peer_rank();
  const bool is_rank = done.ok() && is_other_rank(peer);
  // A peer that has opened new sockets comes again, and the end of its old connection may be unread.
  if (is_rank) read_frames(peer);
  if (!strangers_.contains(serial)) return {};  // that end has read this connection, too
  if (!is_rank || peers_[static_cast<size_t>(peer)].in.fd) {
    // Not a rank of this job, or one that gave up. If a real peer is missed here, the connection in the other direction
    // notices it.
    if (!done.ok()) {
      refuse(stranger, done.error());
    } else if (!is_rank) {
      refuse(stranger, {Code::kRemoteError,
                        "it proved to be rank " + std::to_string(peer) + ", which is not another rank of this job"});
    } else {
      LOG(kInfo, kShm, "shm: %s has connected twice", peers_[static_cast<size_t>(peer)].name.c_str());
    }
    drop(stranger);
    strangers_.erase(found);
    return {};
  }
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.in = std::move(stranger);
  p.in.exchange.reset();
  p.left = false;
  strangers_.erase(found);
  TRY(watch(p.in.fd.get(), Source::kIn, static_cast<uint32_t>(peer)));
  read_frames(peer);
  return {};
}

}  // namespace trestle
