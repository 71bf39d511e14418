// A rank cannot be connected with its neighbours: it finds the cause, sends it to other ranks, and names absent ranks.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "control_mesh/control_link.h"
#include "rendezvous/neighbours_impl.h"
#include "transport/auth/strangers.h"

namespace trestle {
namespace {

// How long a failing rank waits for another rank's cause before it reports its own.
constexpr int64_t kCauseNs = 1'000'000'000;

}  // namespace

// A neighbour that is gone may have given up because of another rank whose failure is not known here yet. But if
// exactly one rank is missing at the deadline, that rank is to blame. Other ranks may be asking about this one, which
// cannot answer yet.
Error NeighbourConnector::cause_of(const Error& own) {
  if (told_ || own.code == Code::kAborted) return own;
  if (own.code == Code::kTimeout && absent().size() == 1) return own;
  const int64_t until = monotonic_clock().now_ns() + kCauseNs;
  while (monotonic_clock().now_ns() < until) {
    const Status cause = look_for_failure();
    if (!cause.ok()) return cause.error();
    ::poll(nullptr, 0, 5);
  }
  return own;
}

// Tells every rank that may count on this one: ranks whose proof this rank has acknowledged, and ranks to which it has
// proved itself and whose acknowledgement may be on its way. It need not read anything first: a rank whose proof lies
// here unread has got no proof and no acknowledgement of this rank, so it does not count on this one.
void NeighbourConnector::tell_all(const Error& error) {
  for (Stranger& stranger : strangers_) {
    const bool first = stranger.handshake().purpose() == Purpose::kControl;
    if (first && claim_of(stranger.handshake()) == StrangerClaim::kPromised)
      tell(stranger.socket, stranger.handshake().peer_rank(), error);
  }
  for (Link& link : links_) {
    // Also after an ask: the neighbour reads frames as soon as it has taken the connection.
    if (link.done() || link.stage == Stage::kAnswer) tell(link.socket, link.peer, error);
  }
}

void NeighbourConnector::tell(UniqueFd& socket, int32_t rank, const Error& error) {
  if (!socket) return;
  ControlFrame frame;
  frame.kind = ControlKind::kError;
  frame.payload = encode(FailureReport{config_.rank, error});
  ControlLink link(rank, std::move(socket), kMaxSentence * 2);
  link.send(frame);
  // Closing a socket with unread bytes resets the connection, and a reset overtakes the frame.
  end_sending(link.fd());
  std::array<std::byte, 4096> ignored;
  for (Result<size_t> got = 1; got.ok() && got.value() > 0 && got.value() != kEndOfStream;)
    got = receive_bytes(link.fd(), ignored);
}

// The failure that the meeting place or a connected rank reports, if any.
Status NeighbourConnector::look_for_failure() {
  const auto look = [this]() -> Status {
    if (meeting_.failure) TRY(meeting_.failure());
    for (const Link& link : links_) {
      if (link.done()) TRY(failure_reported_by(link));
    }
    return {};
  };
  Status told = look();
  told_ = !told.ok();
  return told;
}

// Heartbeats may come before the report: the neighbour may have all its connections already, and beat.
Status NeighbourConnector::failure_reported_by(const Link& link) const {
  const auto report = waiting_failure(link.socket.get(), config_.nranks);
  return report ? Status(report->error) : Status();
}

// While this rank awaits other neighbours, it must notice the death of a connected one before the deadline. Where there
// is another rail, only refusals on it tell a lost rail from a death.
Status NeighbourConnector::watch_done(int64_t now) {
  for (Link& link : links_) {
    const std::string end = link.done() ? end_of(link.socket) : "";
    if (end.empty()) continue;
    const Status told = failure_reported_by(link);  // it may have come with the end
    told_ = !told.ok();
    TRY(told);
    if (!link.moves) return ended(link);
    lose(link, end, now);
  }
  return {};
}

// "": it is open.
std::string NeighbourConnector::end_of(const UniqueFd& socket) {
  pollfd at{socket.get(), POLLRDHUP, 0};  // reports the end even if unread bytes come before it
  if (::poll(&at, 1, 0) <= 0 || at.revents == 0) return "";
  int error = 0;
  socklen_t length = sizeof error;
  (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "it was closed" : std::strerror(error);
}

Error NeighbourConnector::ended(const Link& link) const {
  return {Code::kRemoteError, meeting_.name(link.peer) + " ended while the communicator was being made"};
}

std::vector<int32_t> NeighbourConnector::absent() const {
  std::vector<int32_t> absent;
  for (const Link& link : links_) {
    if (!link.done()) absent.push_back(link.peer);
  }
  std::sort(absent.begin(), absent.end());
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  return absent;
}

std::string NeighbourConnector::names_of(const std::vector<int32_t>& ranks) const {
  std::string names;
  for (const int32_t rank : ranks) names += (names.empty() ? "" : ", ") + meeting_.name(rank);
  return names;
}

void NeighbourConnector::say_wait(int64_t now) {
  if (const int64_t seconds = marks_.passed(now); seconds != 0)
    LOG(kWarn, kBootstrap, "%s has waited %d s for %s: the communicator is being made", own_name(config_).c_str(),
        static_cast<int>(seconds), names_of(absent()).c_str());
}

// Ranks that have reached this point answer their neighbours, even if they are late themselves.
Error NeighbourConnector::timed_out() const {
  const std::vector<int32_t> ranks = absent();
  const std::string names = names_of(ranks);
  const bool one = ranks.size() == 1;
  const std::string refused_by_system =
      accept_failure_.empty() ? "" : "; some connections could not be accepted: " + accept_failure_;
  const Error own{Code::kTimeout,
                  names + (one ? " is" : " are") + " frozen or very slow: no connection with " + (one ? "it" : "them") +
                      " was established in time while the communicator was being made" + refused_by_system};
  return config_.on_overdue ? config_.on_overdue(ranks.front(), own) : own;
}

}  // namespace trestle
