#include "rendezvous/neighbours.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/neighbours_impl.h"
#include "rendezvous/rank_info.h"
#include "transport/auth/strangers.h"

namespace trestle {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kMostStrangers = 64;
constexpr int64_t kRetryNs = 50 * kMs;
// A neighbour that listens on several rails is tried over the next one if it does not answer for so long; twice as long
// each time that all were tried, so that what the system finds out about a host that is gone still counts.
constexpr int64_t kTryNextNs = 1'000 * kMs;
constexpr uint32_t kMostDoublings = 7;
// A neighbour listens before any rank learns its address. So one that refuses for this long has died.
constexpr int64_t kRefusedNs = 5'000 * kMs;
// Between the connection and the first beat of the mesh, nothing else notices a network that is lost while data is
// under way. (Keepalive probes only an idle connection, and the system sends again for a quarter of an hour.)
TcpOptions while_meeting() {
  TcpOptions options;
  options.user_timeout_ms = 10'000;
  return options;
}

}  // namespace

bool NeighbourConnector::complete() const {
  return std::all_of(out_.begin(), out_.end(), [](const Attempt& a) { return a.stage == Stage::kDone; }) &&
         std::all_of(proved_.begin(), proved_.end(), [](const UniqueFd& fd) { return static_cast<bool>(fd); });
}

// A rank that gives up sends the reason to the ranks that it reached, and through the meeting place to the others.
// Without it they would have to guess, and would name the wrong rank.
Result<Neighbours> NeighbourConnector::run() {
  Result<Neighbours> result = connect_all();
  if (result.ok()) {
    if (meeting_.report) meeting_.report({});
    return result;
  }
  const Error error = cause_of(result.error());
  Error told = error;
  const std::string own_name =
      config_.names.empty() ? own_rank_name(config_.rank) : config_.names[static_cast<size_t>(config_.rank)];
  if (error.code == Code::kAborted && !told_) told = config_.on_abort ? config_.on_abort() : giving_up(own_name);
  tell_all(told);
  if (meeting_.report) meeting_.report({told});
  return error;
}

Result<Neighbours> NeighbourConnector::connect_all() {
  proved_.resize(static_cast<size_t>(steps_));
  for (int k = 0; k < steps_; ++k) out_.emplace_back(k);
  while (true) {
    const int64_t now = monotonic_clock().now_ns();
    accept_some(now);
    for (Attempt& attempt : out_) TRY(move_out(attempt, now));
    for (Attempt& attempt : in_) move_in(attempt, now);
    in_.remove_if([](const Attempt& attempt) { return !attempt.socket; });
    if (complete()) break;
    TRY(look_for_failure());
    TRY(watch_done());
    const Status waited = wait();
    if (!waited.ok()) return waited.error();
  }
  Neighbours neighbours;
  for (int k = 0; k < steps_; ++k) {
    neighbours.out.push_back({peer(k, 1), std::move(out_[static_cast<size_t>(k)].socket)});
    neighbours.in.push_back({peer(k, -1), std::move(proved_[static_cast<size_t>(k)])});
  }
  return neighbours;
}

// Waits until something can move, at most 20 ms. Retries, strangers' time limits and the abort flag are checked after
// each wait.
Status NeighbourConnector::wait() {
  if (limit_.aborted != nullptr && limit_.aborted->load()) return Error{Code::kAborted, "the communicator was aborted"};
  const int64_t left_ns = std::min(limit_.deadline_ns, meeting_.deadline_ns) - monotonic_clock().now_ns();
  if (left_ns <= 0) return timed_out();
  if (config_.awaited != nullptr) *config_.awaited = absent().front();
  std::vector<pollfd> fds;
  const bool pauses = admission_.pauses(monotonic_clock().now_ns());
  for (const Listener& listener : meeting_.listeners) {
    if (!pauses) fds.push_back({listener.fd.get(), POLLIN, 0});
  }
  const auto add = [&fds](const Attempt& attempt) {
    if (!attempt.socket || attempt.stage == Stage::kDone) return;
    const short event = attempt.stage == Stage::kConnecting ? POLLOUT : attempt.exchange->awaited_event();
    fds.push_back({attempt.socket.get(), event, 0});
  };
  for (const Attempt& attempt : out_) add(attempt);
  for (const Attempt& attempt : in_) add(attempt);
  ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left_ns / kMs + 1, 20)));
  return {};
}

Status NeighbourConnector::move_out(Attempt& attempt, int64_t now) {
  if (attempt.stage == Stage::kIdle && now >= attempt.since_ns) {
    const Status begun = begin(attempt, now);
    if (!begun.ok()) return retry(attempt, now, begun.error());
  }
  if (attempt.stage == Stage::kConnecting) {
    const Result<bool> connected = finish_connect(attempt.socket.get());
    if (!connected.ok()) return retry(attempt, now, connected.error());
    if (connected.value()) set_tcp_options(attempt.socket.get(), while_meeting());
    if (connected.value()) attempt.stage = Stage::kHandshake;
  }
  if (attempt.stage == Stage::kHandshake) {
    const Result<bool> done = attempt.exchange->step(attempt.socket.get());
    if (!done.ok()) {
      if (attempt.handshake().secret_differs()) strike_place(attempt, now);
      return retry(attempt, now, done.error());
    }
    if (done.value()) attempt.stage = Stage::kDone;
  }
  if (is_silent(attempt, now)) {
    try_next(attempt);
    attempt.refused_ns = -1;  // who does not answer has not refused
  }
  return {};
}

// Only until the neighbour has answered. Afterwards it may count on this connection already.
bool NeighbourConnector::is_silent(const Attempt& attempt, int64_t now) {
  const bool waits = attempt.stage == Stage::kConnecting || attempt.stage == Stage::kHandshake;
  return waits && attempt.places.size() > 1 && attempt.handshake().peer_rank() < 0 &&
         now - attempt.begun_ns >= kTryNextNs << std::min(attempt.rounds, kMostDoublings);
}

Status NeighbourConnector::begin(Attempt& attempt, int64_t now) {
  if (attempt.places.empty())
    attempt.places = TRY(parse_meeting_text(meeting_.addresses[static_cast<size_t>(attempt.step)]));
  attempt.begun_ns = now;
  attempt.socket = TRY(start_connect(attempt.places[attempt.place]));
  attempt.exchange.emplace(Role::kInitiator, Purpose::kControl, credentials(), peer(attempt.step, 1));
  attempt.stage = Stage::kConnecting;
  return {};
}

void NeighbourConnector::try_next(Attempt& attempt) {
  attempt.socket.reset();
  attempt.stage = Stage::kIdle;
  if (++attempt.place < attempt.places.size()) return;
  attempt.place = 0;
  ++attempt.rounds;
}

// Somebody else listens there, as where every host has the same private address. If there is no other place, this is
// for good.
void NeighbourConnector::strike_place(Attempt& attempt, int64_t now) {
  if (attempt.places.size() == 1) {
    attempt.refused_ns = now - kRefusedNs;
    return;
  }
  attempt.places.erase(attempt.places.begin() + static_cast<ptrdiff_t>(attempt.place));
  if (attempt.place-- == 0) attempt.place = attempt.places.size() - 1;  // try_next() goes to the one behind it
}

Status NeighbourConnector::retry(Attempt& attempt, int64_t now, const Error& error) {
  try_next(attempt);
  attempt.since_ns = now + kRetryNs;
  if (attempt.refused_ns < 0) attempt.refused_ns = now;
  if (now - attempt.refused_ns < kRefusedNs) return {};
  return Error{Code::kRemoteError, meeting_.name(peer(attempt.step, 1)) + " at " +
                                       meeting_.addresses[static_cast<size_t>(attempt.step)] +
                                       " cannot be reached: " + error.message};
}

void NeighbourConnector::accept_some(int64_t now) {
  for (const Listener& listener : meeting_.listeners) {
    if (admission_.pauses(now)) return;
    const Status taken = admission_.take(listener.fd.get(), now, [&](UniqueFd fd) { admit(std::move(fd), now); });
    if (taken.ok()) continue;
    if (accept_failure_.empty())
      LOG(kWarn, kBootstrap, "rank %d cannot accept a connection: %s", config_.rank, taken.error().message.c_str());
    accept_failure_ = taken.error().message;
  }
}

void NeighbourConnector::admit(UniqueFd socket, int64_t now) {
  const auto last =
      find_stranger_to_drop(in_, kMostStrangers, [](const Attempt& a) { return claim_of(a.handshake()); });
  if (last != in_.end()) {
    refuse(*last, kNoRoomForStrangers);
    in_.erase(last);
  }
  in_.emplace_back(-1);
  Attempt& attempt = in_.back();
  attempt.socket = std::move(socket);
  attempt.from = peer_address(attempt.socket.get());
  set_tcp_options(attempt.socket.get(), while_meeting());
  attempt.exchange.emplace(Role::kAcceptor, Purpose::kControl, credentials());
  attempt.stage = Stage::kHandshake;
  attempt.since_ns = now;
  move_in(attempt, now);
  if (!attempt.socket) in_.pop_back();
}

// A rank that has proved itself gets more time for the acknowledgement: it counts on this connection already.
void NeighbourConnector::move_in(Attempt& attempt, int64_t now) {
  const Result<bool> done = attempt.exchange->step(attempt.socket.get());
  if (!done.ok()) return refuse(attempt, done.error().message);
  if (!done.value()) {
    const bool late = now - attempt.since_ns >= config_.handshake_timeout_ns;
    if (late && !attempt.proved()) refuse(attempt, kStrangerIsLate);
    return;
  }
  for (int k = 0; k < steps_; ++k) {
    UniqueFd& seat = proved_[static_cast<size_t>(k)];
    if (peer(k, -1) != attempt.handshake().peer_rank() || seat) continue;
    seat = std::move(attempt.socket);
    return;
  }
  refuse(attempt, "rank " + std::to_string(attempt.handshake().peer_rank()) + " is not a neighbour that is awaited");
}

void NeighbourConnector::refuse(Attempt& attempt, const std::string& reason) {
  if (attempt.proved() && !attempt.handshake().done())
    LOG(kInfo, kBootstrap, "rank %d: rank %d gave up before it was connected: %s", config_.rank,
        attempt.handshake().peer_rank(), reason.c_str());
  else if (refused_once_.first(format_host(attempt.from) + reason))
    LOG(kWarn, kBootstrap, "rank %d refused a connection from %s: %s", config_.rank,
        format_address(attempt.from).c_str(), reason.c_str());
  attempt.socket.reset();
}

Result<Neighbours> connect_neighbours(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit) {
  return NeighbourConnector(config, meeting, limit).run();
}

}  // namespace trestle
