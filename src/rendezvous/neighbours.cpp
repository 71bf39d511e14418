#include "rendezvous/neighbours.h"

#include <poll.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "rendezvous/giving_up.h"
#include "rendezvous/mesh_rails.h"
#include "rendezvous/neighbours_impl.h"

namespace trestle {
namespace {

constexpr int64_t kRetryNs = 50 * kMs;
// A neighbour that listens on several rails is tried over the next one if it does not answer for this long. The time
// doubles each time that all were tried. So the system gets the time to find out that a host is gone.
constexpr int64_t kTryNextNs = 1'000 * kMs;
constexpr uint32_t kMostDoublings = 7;
// A neighbour listens before any rank learns its address. So one that refuses for this long has died.
constexpr int64_t kRefusedNs = 5'000 * kMs;
constexpr int64_t kUnacknowledgedNs = 10'000 * kMs;
constexpr int64_t kLeastUnacknowledgedNs = 200 * kMs;

}  // namespace

std::map<int32_t, std::string> texts_of_neighbours(const Meeting& meeting, int32_t rank, int32_t nranks) {
  const std::vector<int32_t> ranks = mesh_neighbours(rank, nranks);
  CHECK(ranks.size() == meeting.addresses.size(), "a meeting needs the addresses of all neighbours");
  std::map<int32_t, std::string> texts;
  for (size_t i = 0; i < ranks.size(); ++i) texts[ranks[i]] = meeting.addresses[i];
  return texts;
}

// Between the connection and the first beat of the mesh, nothing else notices a network that is lost while data is
// under way. (Keepalive probes only an idle connection, and the system sends again for a quarter of an hour.)
TcpOptions NeighbourConnector::while_meeting(const Link& link) const {
  TcpOptions options;
  const int64_t limit_ns = link.moves ? std::max(config_.rail_timeout_ns, kLeastUnacknowledgedNs) : kUnacknowledgedNs;
  options.user_timeout_ms = static_cast<int>(limit_ns / kMs);
  return options;
}

bool NeighbourConnector::complete() const {
  return std::all_of(links_.begin(), links_.end(), [](const Link& link) { return link.done(); });
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
  if (error.code == Code::kAborted && !told_)
    told = config_.on_abort ? config_.on_abort() : giving_up(own_name(config_));
  tell_all(told);
  if (meeting_.report) meeting_.report({told});
  return error;
}

const std::string& NeighbourConnector::text_of(const Link& link) const {
  return meeting_.addresses[static_cast<size_t>(link.out ? link.step : steps_ + link.step)];
}

Status NeighbourConnector::make_links() {
  const std::map<int32_t, std::string> texts = texts_of_neighbours(meeting_, config_.rank, config_.nranks);
  for (const int32_t peer : mesh_neighbours(config_.rank, config_.nranks)) {
    Link link;
    link.peer = peer;
    link.out = static_cast<int>(links_.size()) < steps_;
    link.step = static_cast<uint8_t>(static_cast<int>(links_.size()) % steps_);
    if (!link.out) link.stage = Stage::kAwaited;
    Result<MeetingPlaces> places = parse_meeting_text(texts.at(peer));
    if (!places.ok())
      return Error{Code::kRemoteError,
                   meeting_.name(peer) + " does not say where it listens: " + places.error().message};
    link.places = std::move(places).value().addresses;
    link.moves = !rail_ways(meeting_.listeners, texts.at(peer)).empty();
    links_.push_back(std::move(link));
  }
  return {};
}

Result<Neighbours> NeighbourConnector::connect_all() {
  TRY(make_links());
  while (true) {
    const int64_t now = monotonic_clock().now_ns();
    accept_some(now);
    for (Link& link : links_) TRY(drive(link, now));
    strangers_.remove_if([&](Stranger& stranger) { return !drive_stranger(stranger, now); });
    if (complete()) break;
    TRY(look_for_failure());
    TRY(watch_done(now));
    say_wait(now);
    const Status waited = wait();
    if (!waited.ok()) return waited.error();
  }
  Neighbours neighbours;
  for (Link& link : links_)
    (link.out ? neighbours.out : neighbours.in).push_back({link.peer, std::move(link.socket), link.taken});
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
  for (const RailListener& at : meeting_.listeners) {
    if (!pauses) fds.push_back({at.listener.fd.get(), POLLIN, 0});
  }
  for (const Link& link : links_) {
    if (!link.socket || link.done()) continue;
    const short event = link.stage == Stage::kConnecting  ? short{POLLOUT}
                        : link.stage == Stage::kHandshake ? link.exchange->awaited_event()
                                                          : short{POLLIN};
    fds.push_back({link.socket.get(), event, 0});
  }
  for (const Stranger& stranger : strangers_)
    fds.push_back({stranger.socket.get(), stranger.exchange.awaited_event(), 0});
  ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left_ns / kMs + 1, 20)));
  return {};
}

Status NeighbourConnector::drive(Link& link, int64_t now) {
  if (link.stage == Stage::kIdle && now >= link.next_ns) {
    const Status begun = begin(link, now);
    if (!begun.ok() && begun.error().code == Code::kInvalidUsage) return begun;
    if (!begun.ok()) return retry(link, now, begun.error());
  }
  if (link.stage == Stage::kConnecting) {
    const Result<bool> connected = finish_connect(link.socket.get());
    if (!connected.ok()) return retry(link, now, connected.error());
    if (connected.value()) {
      set_tcp_options(link.socket.get(), while_meeting(link));
      link.stage = Stage::kHandshake;
      link.answered_ns = now;
    }
  }
  if (link.stage == Stage::kHandshake) {
    const Result<bool> done = link.exchange->step(link.socket.get());
    if (!done.ok()) {
      if (link.exchange->handshake().secret_differs()) strike_place(link, now);
      return retry(link, now, done.error());
    }
    if (done.value()) TRY(finish_handshake(link, now));
  }
  if (link.stage == Stage::kAnswer) TRY(read_answer(link, now));
  if (is_silent(link, now)) {
    try_next(link);
    link.refused_ns = -1;  // no answer is no refusal
  }
  return check_host(link, now);
}

// A neighbour had its connection, and now its host answers on no rail. (A stopped process is no such case: its system
// still takes connections.)
Status NeighbourConnector::check_host(const Link& link, int64_t now) const {
  const bool unreached = link.stage == Stage::kIdle || link.stage == Stage::kConnecting;
  if (!link.made || !unreached || link.rounds == 0 || now - link.answered_ns < kUnacknowledgedNs) return {};
  return Error{Code::kRemoteError, meeting_.name(link.peer) + " is lost: its host has answered on no rail for " +
                                       std::to_string(kUnacknowledgedNs / (1'000 * kMs)) +
                                       "s while the communicator was being made"};
}

// The first connection is silent only until the neighbour's hello has come: from then on the neighbour may count on the
// connection. It counts on a later connection only when it has taken it.
bool NeighbourConnector::is_silent(const Link& link, int64_t now) {
  if (link.stage != Stage::kConnecting && link.stage != Stage::kHandshake && link.stage != Stage::kAnswer) return false;
  return link.places.size() > 1 && (link.made || link.exchange->handshake().peer_rank() < 0) &&
         now - link.begun_ns >= kTryNextNs << std::min(link.rounds, kMostDoublings);
}

Status NeighbourConnector::begin(Link& link, int64_t now) {
  link.begun_ns = now;
  link.socket = TRY(start_connect(link.places[link.place]));
  link.exchange.emplace(Role::kInitiator, link.made ? Purpose::kControlMove : Purpose::kControl, credentials(),
                        link.peer);
  link.stage = Stage::kConnecting;
  return {};
}

Status NeighbourConnector::finish_handshake(Link& link, int64_t now) {
  link.stage = link.made ? Stage::kAnswer : Stage::kDone;
  if (!link.made) {
    link.made = true;
    return {};
  }
  MoveRecord ask;
  ask.out = link.out;
  ask.step = link.step;
  ask.number = link.asked = std::max(link.asked, link.taken) + 1;
  const std::string bytes = encode(ask);
  const Result<size_t> sent = send_bytes(link.socket.get(), std::as_bytes(std::span(bytes)));
  if (!sent.ok()) return retry(link, now, sent.error());
  if (sent.value() == bytes.size()) return {};
  return retry(link, now, {Code::kRemoteError, "a new connection takes no data"});
}

Status NeighbourConnector::read_answer(Link& link, int64_t now) {
  const Result<bool> whole = read_move_record(link.socket.get(), link.answer);
  if (!whole.ok()) return retry(link, now, whole.error());
  if (!whole.value()) return {};
  const auto answer = decode_move_record(link.answer);
  if (answer && answer->kind == MoveRecord::Kind::kGone) return ended(link);
  if (answer && answer->kind == MoveRecord::Kind::kYield) {
    drop_attempt(link);
    link.next_ns = now + kRetryNs;
    link.refused_ns = -1;
    return {};
  }
  // This rank has sent no frame yet.
  if (!answer || answer->kind != MoveRecord::Kind::kTaken || answer->came != 0)
    return retry(link, now, {Code::kRemoteError, "it answered nonsense"});
  link.taken = std::max(link.taken, answer->number);
  link.stage = Stage::kDone;
  return {};
}

void NeighbourConnector::lose(Link& link, const std::string& why, int64_t now) {
  LOG(kInfo, kBootstrap, "control: the connection with %s was lost while others were made: %s",
      meeting_.name(link.peer).c_str(), why.c_str());
  drop_attempt(link);
  link.next_ns = link.answered_ns = now;
  link.refused_ns = -1;
  link.rounds = 0;
}

void NeighbourConnector::drop_attempt(Link& link) {
  link.socket.reset();
  link.answer.clear();
  link.stage = Stage::kIdle;
}

void NeighbourConnector::try_next(Link& link) {
  drop_attempt(link);
  if (++link.place < link.places.size()) return;
  link.place = 0;
  ++link.rounds;
}

// Another program listens there, for example where every host has the same private address. If there is no other place,
// the neighbour cannot be reached at all.
void NeighbourConnector::strike_place(Link& link, int64_t now) {
  if (link.places.size() == 1) {
    link.refused_ns = now - kRefusedNs;
    return;
  }
  link.places.erase(link.places.begin() + static_cast<ptrdiff_t>(link.place));
  if (link.place-- == 0) link.place = link.places.size() - 1;  // try_next() goes to the next one
}

Status NeighbourConnector::retry(Link& link, int64_t now, const Error& error) {
  try_next(link);
  link.next_ns = now + kRetryNs;
  if (link.refused_ns < 0) link.refused_ns = now;
  if (now - link.refused_ns < kRefusedNs) return {};
  if (link.made) return ended(link);
  return Error{Code::kRemoteError,
               meeting_.name(link.peer) + " at " + text_of(link) + " cannot be reached: " + error.message};
}

Result<Neighbours> connect_neighbours(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit) {
  return NeighbourConnector(config, meeting, limit).run();
}

}  // namespace trestle
