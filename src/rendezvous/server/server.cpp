#include "rendezvous/server/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/clock.h"
#include "base/rank_names.h"
#include "rendezvous/server/server_impl.h"

namespace trestle {
namespace {

// How long a failing process waits at most for connections that have not been answered.
constexpr int64_t kShutdownNs = 900 * kMs;

}  // namespace

RendezvousServer::RendezvousServer(std::vector<Listener> listeners, const RendezvousOptions& options)
    : listeners_(std::move(listeners)),
      port_(listeners_.front().address.port()),
      options_(options),
      gatherings_(options_, bell_) {}

void RendezvousServer::stop() {
  stopped_.store(true);
  bell_->ring();
}

void RendezvousServer::give_up(int32_t rank, const Error& error) {
  const MutexLock lock(mutex_);
  given_up_.emplace_back(rank, error);
  bell_->ring();
}

bool RendezvousServer::is_of(const Credentials& credentials) const {
  return options_.credentials.job == credentials.job && options_.credentials.secret == credentials.secret;
}

// The bell rings on after stop(): the thread is to end.
void RendezvousServer::take_given_up() {
  if (!stopped_.load()) bell_->quiet();
  std::vector<std::pair<int32_t, Error>> given_up;
  {
    const MutexLock lock(mutex_);
    given_up.swap(given_up_);
  }
  for (const auto& [rank, error] : given_up) {
    Gathering& gathering = gatherings_.lacking(rank);
    if (!gathering.board.decided()) gathering.patience_ns = std::max<int64_t>(gathering.patience_ns, 1);
    if (!gathering.board.complete()) gathering.board.fail(error);
    gathering.no_longer_waits(rank);
  }
}

void RendezvousServer::run() {
  make_room_for(options_.ranks);
  while (!stopped_.load() && (anybody_asks() || !gatherings_.finished(monotonic_clock().now_ns())))
    turn(timeout_ms(monotonic_clock().now_ns()));
  gatherings_.close();
  shut_down();
  // A forked child may hold a copy of the descriptor. The port must not look open because of it.
  for (const Listener& listener : listeners_) ::shutdown(listener.fd.get(), SHUT_RDWR);
  listeners_.clear();
  clients_.clear();
  bell_->close();
}

void RendezvousServer::turn(int timeout_ms) {
  const bool pauses = admission_.pauses(monotonic_clock().now_ns());
  std::vector<pollfd> fds;
  for (const Listener& listener : listeners_)
    fds.push_back({listener.fd.get(), static_cast<short>(pauses ? 0 : POLLIN), 0});
  // After stop() the bell rings on, so shut_down() does not poll it.
  if (!stopped_.load()) fds.push_back({bell_->fd(), POLLIN, 0});
  const size_t first = fds.size();
  std::vector<Client*> order;
  for (Client& client : clients_) {
    fds.push_back({client.socket.get(), events_of(client), 0});
    order.push_back(&client);
  }
  if (::poll(fds.data(), fds.size(), timeout_ms) < 0) return;
  const int64_t now = monotonic_clock().now_ns();
  for (size_t i = 0; i < order.size(); ++i) {
    if (fds[i + first].revents != 0) serve(*order[i], fds[i + first].revents, now);
  }
  const auto calls = [](const pollfd& one) { return one.revents != 0; };
  if (more_wait_ || std::any_of(fds.begin(), fds.begin() + static_cast<ptrdiff_t>(listeners_.size()), calls))
    accept_clients(now);
  drop_late(now);
  take_given_up();
  decide(now);
  clients_.remove_if([](const Client& client) {
    if (client.is(Stage::kClosed) && client.at != nullptr) --client.at->clients;
    return client.is(Stage::kClosed);
  });
}

void RendezvousServer::decide(int64_t now) {
  for (Gathering& gathering : gatherings_) decide(gathering, now);
  failed_.store(std::ranges::all_of(gatherings_, [](const Gathering& one) { return one.board.failed(); }));
}

void RendezvousServer::decide(Gathering& gathering, int64_t now) {
  RendezvousBoard& board = gathering.board;
  if (!board.decided()) tell_progress(gathering, now);
  if (!board.decided() && now >= gathering.deadline_ns) board.time_over(options_.place, refusals());
  if (board.complete() && !board.failed()) gatherings_.complete(gathering);
  bool failed = false;
  do {  // failing to send to a rank is a failure too
    failed = board.failed();
    if (failed && gathering.failed_at_ns == kNever) gathering.failed_at_ns = now;
    if (board.decided()) answer_all(gathering, now);
  } while (failed != board.failed());
}

void RendezvousServer::tell_progress(Gathering& gathering, int64_t now) {
  if (gathering.marks.passed(now) == 0 || gathering.board.nranks() == 0) return;
  JoinAnswer answer;
  answer.progress = gathering.board.progress();
  for (Client& client : clients_) {
    if (client.at != &gathering || !client.is(Stage::kWaiting)) continue;
    client.out += framed(encode(answer));
    write(client);
  }
}

short RendezvousServer::events_of(const Client& client) {
  if (client.is(Stage::kHandshake)) return client.exchange.awaited_event();
  return client.has_output() ? POLLIN | POLLOUT : POLLIN;
}

int RendezvousServer::timeout_ms(int64_t now) const {
  int64_t due = kNever;
  for (const Gathering& one : gatherings_) {
    if (!one.board.decided()) due = std::min({due, one.deadline_ns, one.marks.next_ns()});
    if (one.failed_at_ns != kNever && one.failed_at_ns + one.stay_ns() > now)
      due = std::min(due, one.failed_at_ns + one.stay_ns());
  }
  for (const Client& client : clients_) {
    const bool own_waits = client.own && client.at->board.failed() && !client.last;
    if (own_waits) due = std::min(due, client.at->failed_at_ns + kShutdownNs);
    if (client.is(Stage::kConnecting) && client.at->deadline_ns != kNever)
      due = std::min(due, client.at->deadline_ns + client.at->stay_ns());
    if (!client.is(Stage::kWaiting) && !client.is(Stage::kConnecting))
      due = std::min(due, client.since_ns + options_.handshake_timeout_ns);
  }
  if (admission_.pauses(now)) due = std::min(due, admission_.resumes_ns());
  if (due == kNever) return -1;
  return static_cast<int>(std::clamp<int64_t>((due - now) / kMs + 1, 0, 60'000));
}

// A rank that has proved itself counts on the connection. To it, an end without an answer is the end of the process.
bool RendezvousServer::anybody_asks() const {
  return std::ranges::any_of(clients_, [](const Client& client) {
    return client.rank < 0 && !client.is(Stage::kClosed) && client.exchange.handshake().peer_proved();
  });
}

// An empty secret proves nothing: anybody can claim to know it.
StrangerClaim RendezvousServer::claim_of_client(const Client& client) const {
  if (client.rank >= 0) return StrangerClaim::kAdmitted;
  if (client.is(Stage::kClosed)) return StrangerClaim::kNone;
  const StrangerClaim claim = claim_of(client.exchange.handshake());
  return options_.credentials.secret.empty() ? std::min(claim, StrangerClaim::kRank) : claim;
}

size_t RendezvousServer::most_half_open() const {
  const RendezvousBoard& board = gatherings_.newest().board;
  int32_t ranks = options_.ranks > 0 ? options_.ranks : std::min(board.nranks(), kMostRanks);
  if (ranks <= 0) ranks = kUnknownRanks;
  return kMoreHalfOpen + static_cast<size_t>(std::max(ranks - (board.decided() ? 0 : board.arrived()), 0));
}

// All ranks stay connected until they are connected with each other.
void RendezvousServer::make_room_for(int32_t ranks) {
  if (ranks > kMostRanks || ranks <= static_cast<int32_t>(room_.count())) return;
  room_ = DescriptorRoom(static_cast<size_t>(ranks));
  if (!room_.shortage().empty())
    LOG(kWarn, kBootstrap, "%s may have no place for all of its %d ranks: %s", options_.place.c_str(), ranks,
        room_.shortage().c_str());
}

// Where no descriptors are left, only those that strangers hold can be freed.
void RendezvousServer::accept_clients(int64_t now) {
  Status taken;
  more_wait_ = false;
  for (size_t i = 0; i < listeners_.size() && taken.ok(); ++i) {
    taken = admission_.take(listeners_[i].fd.get(), now, [&](UniqueFd fd) { admit(std::move(fd), now); });
    more_wait_ = more_wait_ || admission_.more_wait();
  }
  if (taken.ok()) return;
  if (accept_failure_.empty())
    LOG(kWarn, kBootstrap, "the rendezvous cannot accept a connection: %s", taken.error().message.c_str());
  accept_failure_ = taken.error().message;
  for (Client& client : clients_) {
    if (claim_of_client(client) < StrangerClaim::kPromised) client.stage = Stage::kClosed;
  }
}

// Many ranks may connect before the server runs. Their hellos can be read already, and a silent stranger has sent none.
void RendezvousServer::admit(UniqueFd socket, int64_t now) {
  const auto last = find_stranger_to_drop(clients_, most_half_open(),
                                          [this](const Client& client) { return claim_of_client(client); });
  if (last != clients_.end()) {
    if (!last->is(Stage::kClosed)) refuse(*last, kNoRoomForStrangers);
    clients_.erase(last);
  }
  Client& client = clients_.emplace_back(std::move(socket), options_.credentials, now);
  client.from = peer_address(client.socket.get());
  serve(client, POLLIN, now);
}

// Whether a rank of another process is still to be answered.
bool RendezvousServer::others_are_coming() const {
  return more_wait_ || std::any_of(clients_.begin(), clients_.end(), [](const Client& client) {
           return !client.own && (client.is(Stage::kHandshake) || client.is(Stage::kRequest) || client.has_output());
         });
}

// Answers the ranks of this process last: the process may end as soon as they have their answer. On a failure they also
// wait, briefly, for all pending connections. Otherwise those would only find that the rendezvous is gone.
void RendezvousServer::answer_all(Gathering& gathering, int64_t now) {
  const RendezvousBoard& board = gathering.board;
  std::vector<Client*> asking;
  for (Client& client : clients_) {
    if (client.at != &gathering) continue;
    if (client.is(Stage::kWaiting) || (client.is(Stage::kConnecting) && board.failed())) asking.push_back(&client);
  }
  std::stable_sort(asking.begin(), asking.end(), [](const Client* a, const Client* b) { return a->own < b->own; });
  for (Client* client : asking) {
    if (client->own && board.failed() && now < gathering.failed_at_ns + kShutdownNs && others_are_coming()) continue;
    JoinAnswer answer = board.answer_for(client->rank);
    answer.job = gathering.job;
    if (gathering.deadline_ns != kNever) answer.time_left_ns = std::max<int64_t>(gathering.deadline_ns - now, 1);
    send_answer(*client, answer, board.failed(), now);
  }
}

void RendezvousServer::drop_late(int64_t now) {
  for (Client& client : clients_) {
    if (client.is(Stage::kWaiting) || client.is(Stage::kClosed)) continue;
    if (client.is(Stage::kConnecting)) {
      const Gathering& at = *client.at;
      if (at.deadline_ns != kNever && now >= at.deadline_ns + at.stay_ns()) client.stage = Stage::kClosed;
      continue;
    }
    if (now - client.since_ns < options_.handshake_timeout_ns) continue;
    if (client.rank < 0)
      refuse(client, kStrangerIsLate);
    else
      client.stage = Stage::kClosed;
  }
}

// The process ends. Waiting ranks are told why; ranks that are still connecting are told to go on without the
// rendezvous.
void RendezvousServer::shut_down() {
  int64_t now = monotonic_clock().now_ns();
  const int64_t until = now + kShutdownNs;
  for (Client& client : clients_) {
    if (client.is(Stage::kConnecting) && !client.at->board.failed()) send_answer(client, JoinAnswer{}, true, now);
  }
  const auto open = [this] {
    return std::ranges::any_of(gatherings_, [](const Gathering& one) { return !one.board.decided(); });
  };
  const auto failed = [this] {
    return std::ranges::any_of(gatherings_, [](const Gathering& one) { return one.board.failed(); });
  };
  if (open()) {
    accept_clients(now);
    for (Gathering& one : gatherings_) {
      if (!one.board.decided() && !clients_.empty()) one.board.closes();
    }
  }
  turn(0);
  while (failed() && others_are_coming() && (now = monotonic_clock().now_ns()) < until)
    turn(static_cast<int>((until - now) / kMs + 1));
}

// The end of a sentence about missing ranks: refused connections that may have been theirs.
std::string RendezvousServer::refusals() const {
  const auto counted = [](size_t count) {
    return "; " + std::to_string(count) + (count == 1 ? " connection was" : " connections were") + " refused";
  };
  std::string text;
  if (secret_refusals_ > 0) {
    text = counted(secret_refusals_) + " because " + (secret_refusals_ == 1 ? "it" : "they") +
           " did not know the secret, from ";
    for (size_t i = 0; i < secret_refused_.size(); ++i) text += (i == 0 ? "" : ", ") + secret_refused_[i];
    text += " (is TRESTLE_SECRET the same on all ranks?)";
  }
  if (refused_ > secret_refusals_)
    text += counted(refused_ - secret_refusals_) + " (last reason: " + last_refusal_ + ")";
  if (!accept_failure_.empty()) text += "; some connections could not be accepted: " + accept_failure_;
  return text;
}

}  // namespace trestle
