// A rank cannot be connected with its neighbours: it finds the cause, sends it to other ranks, and names absent ranks.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "control_mesh/control_link.h"
#include "rendezvous/neighbours_impl.h"
#include "transport/auth/strangers.h"

namespace trestle {
namespace {

// How long a failing rank waits for another rank's cause before it reports its own.
constexpr int64_t kCauseNs = 1'000'000'000;

// The kind of the first frame that waits to be read; kHeartbeat if its header has not arrived.
ControlKind kind_of_first_frame(const UniqueFd& socket) {
  std::array<uint8_t, 5> header{};
  const ssize_t seen = ::recv(socket.get(), header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
  return seen == static_cast<ssize_t>(header.size()) ? static_cast<ControlKind>(header[4]) : ControlKind::kHeartbeat;
}

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
// proved itself and whose acknowledgement may be on its way. It need not read anything first: a proof that lies here
// unread was not answered by a proof or an acknowledgement of this rank.
void NeighbourConnector::tell_all(const Error& error) {
  for (Attempt& attempt : out_) {
    if (attempt.stage == Stage::kDone) tell(attempt.socket, peer(attempt.step, 1), error);
  }
  for (Attempt& attempt : in_) {
    if (claim_of(attempt.handshake()) == StrangerClaim::kPromised)
      tell(attempt.socket, attempt.handshake().peer_rank(), error);
  }
  for (int k = 0; k < steps_; ++k) tell(proved_[static_cast<size_t>(k)], peer(k, -1), error);
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
    for (const Attempt& attempt : out_) {
      if (attempt.stage == Stage::kDone) TRY(failure_reported_by(attempt.socket, peer(attempt.step, 1)));
    }
    for (int k = 0; k < steps_; ++k) TRY(failure_reported_by(proved_[static_cast<size_t>(k)], peer(k, -1)));
    return {};
  };
  Status told = look();
  told_ = !told.ok();
  return told;
}

Status NeighbourConnector::failure_reported_by(const UniqueFd& socket, int32_t rank) const {
  if (!socket || kind_of_first_frame(socket) != ControlKind::kError) return {};
  ControlLink link(rank, UniqueFd::open([&] { return ::dup(socket.get()); }), kMaxSentence * 2);
  std::vector<ControlFrame> frames;
  std::string reason;
  (void)link.read(frames, reason);
  if (frames.empty()) return {};
  const auto report = decode_failure_report(frames.front().payload, config_.nranks);
  if (!report) return {};
  return report->error;
}

// While this rank awaits other neighbours, it must notice the death of a connected one before the deadline.
Status NeighbourConnector::watch_done() const {
  for (const Attempt& attempt : out_) {
    if (attempt.stage == Stage::kDone) TRY(still_alive(attempt.socket, peer(attempt.step, 1)));
  }
  for (int k = 0; k < steps_; ++k) {
    const UniqueFd& socket = proved_[static_cast<size_t>(k)];
    if (socket) TRY(still_alive(socket, peer(k, -1)));
  }
  return {};
}

Status NeighbourConnector::still_alive(const UniqueFd& socket, int32_t rank) const {
  char byte = 0;
  const ssize_t seen = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (seen > 0 || (seen < 0 && (errno == EAGAIN || errno == EINTR))) return {};
  return Error{Code::kRemoteError, meeting_.name(rank) + " ended while the communicator was being made"};
}

std::vector<int32_t> NeighbourConnector::absent() const {
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

// Ranks that have reached this point answer their neighbours, even if they are late themselves.
Error NeighbourConnector::timed_out() const {
  const std::vector<int32_t> ranks = absent();
  std::string names;
  for (const int32_t rank : ranks) names += (names.empty() ? "" : ", ") + meeting_.name(rank);
  const bool one = ranks.size() == 1;
  const std::string refused_by_system =
      accept_failure_.empty() ? "" : "; some connections could not be accepted: " + accept_failure_;
  const Error own{Code::kTimeout,
                  names + (one ? " is" : " are") + " frozen or very slow: no connection with " + (one ? "it" : "them") +
                      " was established in time while the communicator was being made" + refused_by_system};
  return config_.on_overdue ? config_.on_overdue(ranks.front(), own) : own;
}

}  // namespace trestle
