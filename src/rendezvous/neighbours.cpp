#include "rendezvous/neighbours.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "control_mesh/control_link.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/message.h"
#include "rendezvous/rank_info.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/auth/strangers.h"

namespace trestle {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kMostStrangers = 64;
constexpr int64_t kRetryNs = 50 * kMs;
// A neighbour listens before any rank learns its address. So one that refuses for this long has died.
constexpr int64_t kRefusedNs = 5'000 * kMs;
// How long a failing rank waits for another rank's cause before it reports its own.
constexpr int64_t kCauseNs = 1'000 * kMs;

// The kind of the first frame that waits to be read; kHeartbeat if its header has not arrived.
ControlKind kind_of_first_frame(const UniqueFd& socket) {
  std::array<uint8_t, 5> header{};
  const ssize_t seen = ::recv(socket.get(), header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
  return seen == static_cast<ssize_t>(header.size()) ? static_cast<ControlKind>(header[4]) : ControlKind::kHeartbeat;
}

class Connector {
 public:
  Connector(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit)
      : config_(config), meeting_(meeting), limit_(limit), steps_(dissemination_steps(config.nranks)) {}

  Result<Neighbours> run();

 private:
  enum class Stage : uint8_t { kIdle, kConnecting, kHandshake, kDone };
  struct Attempt {
    explicit Attempt(int step) : step(step) {}
    int step;  // of an outgoing connection; -1: accepted
    Stage stage = Stage::kIdle;
    UniqueFd socket;
    SocketAddress from;  // of an accepted connection, as read while it was connected
    std::optional<HandshakeExchange> exchange;
    // Accepted: when it was accepted. Outgoing: when to try next.
    int64_t since_ns = 0;
    int64_t refused_ns = -1;  // first refusal of an outgoing connection
    const Handshake& handshake() const { return exchange->handshake(); }
    bool proved() const { return exchange && handshake().peer_proved(); }
  };

  int32_t peer(int step, int direction) const {
    const int64_t at = config_.rank + direction * (int64_t{1} << step);
    return static_cast<int32_t>((at + config_.nranks) % config_.nranks);
  }
  Credentials credentials() const { return {meeting_.secret, meeting_.job, config_.rank}; }
  bool complete() const;
  Status wait();
  Status move_out(Attempt& attempt, int64_t now);
  Status begin(Attempt& attempt, int64_t now);
  Status retry(Attempt& attempt, int64_t now, const Error& error);
  void accept_all(int64_t now);
  void move_in(Attempt& attempt, int64_t now);
  void refuse(Attempt& attempt, const std::string& reason);
  Status listen_for_stories();
  Status story_of(const UniqueFd& socket, int32_t rank) const;
  Status watch_done() const;
  Status still_alive(const UniqueFd& socket, int32_t rank) const;
  Result<Neighbours> connect_all();
  Error cause_of(const Error& own);
  void tell_all(const Error& error);
  void tell(UniqueFd& socket, int32_t rank, const Error& error);
  std::vector<int32_t> absent() const;
  Error timed_out() const;

  const BootstrapConfig& config_;
  const Meeting& meeting_;
  const WaitLimit& limit_;
  const int steps_;
  std::vector<Attempt> out_;
  std::list<Attempt> in_;         // accepted connections that are not acknowledged yet
  std::vector<UniqueFd> proved_;  // acknowledged connections of rank - 2^k
  bool told_ = false;             // the error came from another rank
  OncePerKey refused_once_;
};

bool Connector::complete() const {
  return std::all_of(out_.begin(), out_.end(), [](const Attempt& a) { return a.stage == Stage::kDone; }) &&
         std::all_of(proved_.begin(), proved_.end(), [](const UniqueFd& fd) { return static_cast<bool>(fd); });
}

// A rank that gives up sends the reason to the ranks that it reached, and through the meeting place to the others.
// Without it they would have to guess, and would name the wrong rank.
Result<Neighbours> Connector::run() {
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

// A neighbour that is gone may have given up because of another rank whose failure is not known here yet. But if
// exactly one rank is missing at the deadline, that rank is to blame. Other ranks may be asking about this one, which
// cannot answer yet.
Error Connector::cause_of(const Error& own) {
  if (told_ || own.code == Code::kAborted) return own;
  if (own.code == Code::kTimeout && absent().size() == 1) return own;
  const int64_t until = monotonic_clock().now_ns() + kCauseNs;
  while (monotonic_clock().now_ns() < until) {
    const Status cause = listen_for_stories();
    if (!cause.ok()) return cause.error();
    ::poll(nullptr, 0, 5);
  }
  return own;
}

// Tells every rank that may count on this one: ranks whose proof this rank has acknowledged, and ranks to which it has
// proved itself and whose acknowledgement may be on its way. It need not read anything first: a proof that lies here
// unread was not answered by a proof or an acknowledgement of this rank.
void Connector::tell_all(const Error& error) {
  for (Attempt& attempt : out_) {
    if (attempt.stage == Stage::kDone) tell(attempt.socket, peer(attempt.step, 1), error);
  }
  for (Attempt& attempt : in_) {
    if (attempt.proved() && attempt.handshake().outgoing().empty())
      tell(attempt.socket, attempt.handshake().peer_rank(), error);
  }
  for (int k = 0; k < steps_; ++k) tell(proved_[static_cast<size_t>(k)], peer(k, -1), error);
}

void Connector::tell(UniqueFd& socket, int32_t rank, const Error& error) {
  if (!socket) return;
  ControlFrame frame;
  frame.kind = ControlKind::kError;
  frame.payload = encode(ControlStory{config_.rank, error});
  ControlLink link(rank, std::move(socket), kMaxSentence * 2);
  link.send(frame);
  // Closing a socket with unread bytes resets the connection, and a reset overtakes the frame.
  end_sending(link.fd());
  std::array<std::byte, 4096> ignored;
  for (Result<size_t> got = 1; got.ok() && got.value() > 0 && got.value() != kEndOfStream;)
    got = receive_bytes(link.fd(), ignored);
}

Result<Neighbours> Connector::connect_all() {
  proved_.resize(static_cast<size_t>(steps_));
  for (int k = 0; k < steps_; ++k) out_.emplace_back(k);
  while (true) {
    const int64_t now = monotonic_clock().now_ns();
    accept_all(now);
    for (Attempt& attempt : out_) TRY(move_out(attempt, now));
    for (Attempt& attempt : in_) move_in(attempt, now);
    in_.remove_if([](const Attempt& attempt) { return !attempt.socket; });
    if (complete()) break;
    TRY(listen_for_stories());
    TRY(watch_done());
    const Status waited = wait();
    if (!waited.ok()) return waited.error();
  }
  Neighbours neighbours;
  for (int k = 0; k < steps_; ++k) {
    set_tcp_options(out_[static_cast<size_t>(k)].socket.get(), {});
    set_tcp_options(proved_[static_cast<size_t>(k)].get(), {});
    neighbours.out.push_back({peer(k, 1), std::move(out_[static_cast<size_t>(k)].socket)});
    neighbours.in.push_back({peer(k, -1), std::move(proved_[static_cast<size_t>(k)])});
  }
  return neighbours;
}

// Waits until something can move, at most 20 ms. Retries, strangers' time limits and the abort flag are checked after
// each wait.
Status Connector::wait() {
  if (limit_.aborted != nullptr && limit_.aborted->load()) return Error{Code::kAborted, "the communicator was aborted"};
  const int64_t left_ns = std::min(limit_.deadline_ns, meeting_.deadline_ns) - monotonic_clock().now_ns();
  if (left_ns <= 0) return timed_out();
  if (config_.awaited != nullptr) *config_.awaited = absent().front();
  std::vector<pollfd> fds = {{meeting_.listener.fd.get(), POLLIN, 0}};
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

Status Connector::move_out(Attempt& attempt, int64_t now) {
  if (attempt.stage == Stage::kIdle && now >= attempt.since_ns) {
    const Status begun = begin(attempt, now);
    if (!begun.ok()) return retry(attempt, now, begun.error());
  }
  if (attempt.stage == Stage::kConnecting) {
    const Result<bool> connected = finish_connect(attempt.socket.get());
    if (!connected.ok()) return retry(attempt, now, connected.error());
    if (connected.value()) attempt.stage = Stage::kHandshake;
  }
  if (attempt.stage != Stage::kHandshake) return {};
  const Result<bool> done = attempt.exchange->step(attempt.socket.get());
  if (!done.ok()) {
    if (attempt.handshake().secret_differs()) attempt.refused_ns = now - kRefusedNs;  // for good
    return retry(attempt, now, done.error());
  }
  if (done.value()) attempt.stage = Stage::kDone;
  return {};
}

Status Connector::begin(Attempt& attempt, int64_t) {
  const SocketAddress address = TRY(parse_address(meeting_.addresses[static_cast<size_t>(attempt.step)]));
  attempt.socket = TRY(start_connect(address));
  attempt.exchange.emplace(Role::kInitiator, Purpose::kControl, credentials(), peer(attempt.step, 1));
  attempt.stage = Stage::kConnecting;
  return {};
}

Status Connector::retry(Attempt& attempt, int64_t now, const Error& error) {
  attempt.socket.reset();
  attempt.stage = Stage::kIdle;
  attempt.since_ns = now + kRetryNs;
  if (attempt.refused_ns < 0) attempt.refused_ns = now;
  if (now - attempt.refused_ns < kRefusedNs) return {};
  return Error{Code::kRemoteError, meeting_.name(peer(attempt.step, 1)) + " at " +
                                       meeting_.addresses[static_cast<size_t>(attempt.step)] +
                                       " cannot be reached: " + error.message};
}

void Connector::accept_all(int64_t now) {
  while (true) {
    Result<UniqueFd> accepted = accept_connection(meeting_.listener.fd.get());
    if (!accepted.ok() || !accepted.value()) return;
    const auto last =
        find_stranger_to_drop(in_, kMostStrangers, [](const Attempt& a) { return claim_of(a.handshake()); });
    if (last != in_.end()) {
      refuse(*last, kNoRoomForStrangers);
      in_.erase(last);
    }
    in_.emplace_back(-1);
    Attempt& attempt = in_.back();
    attempt.socket = std::move(accepted).value();
    attempt.from = peer_address(attempt.socket.get());
    attempt.exchange.emplace(Role::kAcceptor, Purpose::kControl, credentials());
    attempt.stage = Stage::kHandshake;
    attempt.since_ns = now;
  }
}

// A rank that has proved itself gets more time for the acknowledgement: it counts on this connection already.
void Connector::move_in(Attempt& attempt, int64_t now) {
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

void Connector::refuse(Attempt& attempt, const std::string& reason) {
  if (attempt.proved() && !attempt.handshake().done())
    LOG(kInfo, kBootstrap, "rank %d: rank %d gave up before it was connected: %s", config_.rank,
        attempt.handshake().peer_rank(), reason.c_str());
  else if (refused_once_.first(format_host(attempt.from) + reason))
    LOG(kWarn, kBootstrap, "rank %d refused a connection from %s: %s", config_.rank,
        format_address(attempt.from).c_str(), reason.c_str());
  attempt.socket.reset();
}

// The failure that the meeting place or a connected rank reports, if any.
Status Connector::listen_for_stories() {
  const auto look = [this]() -> Status {
    if (meeting_.failure) TRY(meeting_.failure());
    for (const Attempt& attempt : out_) {
      if (attempt.stage == Stage::kDone) TRY(story_of(attempt.socket, peer(attempt.step, 1)));
    }
    for (int k = 0; k < steps_; ++k) TRY(story_of(proved_[static_cast<size_t>(k)], peer(k, -1)));
    return {};
  };
  Status told = look();
  told_ = !told.ok();
  return told;
}

Status Connector::story_of(const UniqueFd& socket, int32_t rank) const {
  if (!socket || kind_of_first_frame(socket) != ControlKind::kError) return {};
  ControlLink link(rank, UniqueFd::open([&] { return ::dup(socket.get()); }), kMaxSentence * 2);
  std::vector<ControlFrame> frames;
  std::string reason;
  (void)link.read(frames, reason);
  if (frames.empty()) return {};
  const auto story = decode_story(frames.front().payload, config_.nranks);
  if (!story) return {};
  return story->error;
}

// The death of a neighbour must be noticed before the deadline while this rank still awaits others.
Status Connector::watch_done() const {
  for (const Attempt& attempt : out_) {
    if (attempt.stage == Stage::kDone) TRY(still_alive(attempt.socket, peer(attempt.step, 1)));
  }
  for (int k = 0; k < steps_; ++k) {
    const UniqueFd& socket = proved_[static_cast<size_t>(k)];
    if (socket) TRY(still_alive(socket, peer(k, -1)));
  }
  return {};
}

Status Connector::still_alive(const UniqueFd& socket, int32_t rank) const {
  char byte = 0;
  const ssize_t seen = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (seen > 0 || (seen < 0 && (errno == EAGAIN || errno == EINTR))) return {};
  return Error{Code::kRemoteError, meeting_.name(rank) + " ended while the communicator was being made"};
}

std::vector<int32_t> Connector::absent() const {
  std::vector<int32_t> absent;
  for (const Attempt& attempt : out_) {
    if (attempt.stage != Stage::kDone) absent.push_back(peer(attempt.step, 1));
  }
  for (int k = 0; k < steps_; ++k) {
    if (!proved_[static_cast<size_t>(k)]) absent.push_back(peer(k, -1));
  }
  std::sort(absent.begin(), absent.end());
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  return absent;
}

// Ranks that have come this far answer their neighbours, even if they are late themselves.
Error Connector::timed_out() const {
  const std::vector<int32_t> ranks = absent();
  std::string names;
  for (const int32_t rank : ranks) names += (names.empty() ? "" : ", ") + meeting_.name(rank);
  const bool one = ranks.size() == 1;
  const Error own{Code::kTimeout, names + (one ? " is" : " are") + " frozen or very slow: no connection with " +
                                      (one ? "it" : "them") +
                                      " came about in time while the communicator was being made"};
  return config_.on_overdue ? config_.on_overdue(ranks.front(), own) : own;
}

}  // namespace

Result<Neighbours> connect_neighbours(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit) {
  return Connector(config, meeting, limit).run();
}

}  // namespace trestle
