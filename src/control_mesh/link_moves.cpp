// Links that are away: attempts to reach the peer over its rails, and when they are given up.
#include "control_mesh/link_moves.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>

#include "base/clock.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr int64_t kConnectNs = 500 * kMs;
constexpr int64_t kAnswerNs = kSecond;
// A stopped process leaves handshakes without an answer. Each attempt stays in its queue, so they become rare.
constexpr int64_t kFirstPatienceNs = 2 * kSecond;
constexpr int64_t kMostPatienceNs = 30 * kSecond;
constexpr int64_t kFirstPauseNs = 20 * kMs;
constexpr int64_t kMostPauseNs = kSecond;
constexpr int64_t kLateNs = kSecond;
// For the first connection
constexpr int64_t kTryNextNs = kSecond;
constexpr uint32_t kMostDoublings = 7;
constexpr int64_t kRetryNs = 50 * kMs;
constexpr int64_t kRefusedNs = 5 * kSecond;
constexpr int64_t kUnacknowledgedNs = 10 * kSecond;

}  // namespace

LinkMoves::LinkMoves(Links& links, std::unique_ptr<ControlRails> rails, const std::vector<Name>& names,
                     const Options& options)
    : links_(links), rails_(std::move(rails)), options_(options), ends_(names.size()), admissions_(rails_->count()) {
  for (size_t i = 0; i < names.size(); ++i) {
    End& end = ends_[i];
    end.name = names[i];
    if (end.name.made && end.name.fd < 0) continue;
    if (end.name.made) end.on = rails_->rail_of(end.name.fd);
    for (const size_t rail : rails_->rails_to(end.name.peer))
      end.ways.push_back({rail, Last::kUnknown, "", 0, rails_->name(rail) == end.on});
    end.away = !end.name.made;
    end.pause_ns = kRetryNs;
    const size_t places = end.away ? rails_->places(end.name.peer).size() : 0;
    for (size_t place = 0; place < places; ++place) end.places.push_back({place, Last::kUnknown, "", 0});
  }
}

// All links with a peer lead to the same listeners.
void LinkMoves::prove(int32_t peer, size_t rail) {
  for (End& end : ends_) {
    if (end.name.peer != peer) continue;
    for (Way& way : end.ways) way.proven = way.proven || way.rail == rail;
  }
}

// A firewall may refuse connections, too. So a refusal counts only on a rail that has carried a connection.
bool LinkMoves::not_connected(End& end, const Error& error, int64_t now_ns) {
  Way& way = end.tried()[end.way];
  way.last = Last::kUnknown;
  return failed(end, error.message, is_refusal(error) && way.proven, now_ns);
}

// Edge-triggered: a listener that is not served for a moment must not wake the thread all the time.
Status LinkMoves::listen() {
  for (size_t rail = 0; rail < rails_->count(); ++rail) {
    if (!watch(rails_->listener(rail), EPOLLIN | EPOLLET))
      return Error{Code::kSystemError, std::string("epoll_ctl: ") + std::strerror(errno)};
  }
  return {};
}

bool LinkMoves::watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = kKey;
  if (epoll_ctl(options_.epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0) return true;
  return epoll_ctl(options_.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void LinkMoves::begin(size_t link, const std::string& why, int64_t heard_ns, int64_t now_ns) {
  End& end = ends_[link];
  if (end.away || end.gone) return;
  end.away = true;
  end.why = why;
  end.answered_ns = heard_ns;
  end.next_ns = now_ns;
  end.pause_ns = kFirstPauseNs;
  end.patience_ns = kFirstPatienceNs;
  end.all_tried = false;
  for (Way& way : end.ways) {
    if (rails_->name(way.rail) != end.on) continue;
    way.what = why;
    way.at_ns = now_ns;
    way.last = heard_ns < now_ns ? Last::kSilence : Last::kAnswer;
  }
  end.begin_round();
}

void LinkMoves::End::begin_round() {
  std::ranges::stable_sort(tried(), {}, &Way::last);
  way = refused = 0;
  answered = false;
}

// After a refusal the round does not wait for rails that were silent when they were tried last.
bool LinkMoves::End::is_round_over() {
  const auto silent = [](const Way& way) { return way.last == Last::kSilence; };
  const auto next = tried().begin() + static_cast<std::ptrdiff_t>(way);
  const bool died = name.made && refused > 0 && !answered;
  return next == tried().end() || (died && std::all_of(next, tried().end(), silent));
}

void LinkMoves::drop_attempt(End& end) {
  end.socket.reset();
  end.exchange.reset();
  end.answer.clear();
  end.stage = Stage::kIdle;
}

void LinkMoves::forget(size_t link) {
  drop_attempt(ends_[link]);
  ends_[link].away = false;
  ends_[link].gone = true;
}

bool LinkMoves::answers(size_t link, int64_t within_ns, int64_t now_ns) const {
  const End& end = ends_[link];
  return end.stage >= Stage::kHandshake || now_ns - end.answered_ns < within_ns;
}

void LinkMoves::tend(int64_t now_ns) {
  count_own_absence(now_ns);
  accept_some(now_ns);
  for (auto one = strangers_.begin(); one != strangers_.end();)
    one = drive_stranger(*one, now_ns) ? std::next(one) : strangers_.erase(one);
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].dials()) drive(i, now_ns);
  }
  tended_ns_ = now_ns;
  expected_ns_ = next_due_ns();
}

// This process was stopped or starved. So the rails' silence in that time means nothing.
void LinkMoves::count_own_absence(int64_t now_ns) {
  if (expected_ns_ == 0 || now_ns < expected_ns_ || now_ns - expected_ns_ < kLateNs) return;
  for (End& end : ends_) {
    end.answered_ns = now_ns;
    end.all_tried = false;
  }
}

int64_t LinkMoves::next_due_ns() const {
  int64_t due = std::numeric_limits<int64_t>::max();
  for (const End& end : ends_) {
    if (!end.dials()) continue;
    due = std::min(due, end.stage == Stage::kIdle ? end.next_ns : end.until_ns);
    const bool late = end.name.made && end.all_tried && end.stage < Stage::kHandshake;
    if (late) due = std::min(due, end.answered_ns + options_.give_up_ns);
  }
  for (const Stranger& one : strangers_) {
    if (!one.is_promised()) due = std::min(due, one.since_ns + options_.stranger_ns);
  }
  for (const Admission& one : admissions_) {
    if (one.more_wait()) due = std::min(due, tended_ns_);
    if (one.pauses(tended_ns_)) due = std::min(due, one.resumes_ns());
  }
  return due;
}

void LinkMoves::drive(size_t link, int64_t now_ns) {
  End& end = ends_[link];
  while (end.away && step(link, now_ns)) {
    if (end.is_round_over()) end_round(link, now_ns);
  }
  const bool late = now_ns - end.answered_ns >= options_.give_up_ns;
  if (end.away && end.name.made && end.all_tried && late && end.stage < Stage::kHandshake)
    give_up(link, "is lost: none of its rails has answered for " + duration_text(options_.give_up_ns) +
                      " (TRESTLE_HEARTBEAT): " + story(end, now_ns));
}

// False: there is nothing to do before something comes, or a time is reached.
bool LinkMoves::step(size_t link, int64_t now_ns) {
  End& end = ends_[link];
  switch (end.stage) {
    case Stage::kIdle:
      return now_ns >= end.next_ns && dial(end, now_ns);
    case Stage::kConnecting:
      return step_connecting(end, now_ns);
    case Stage::kHandshake:
      return step_handshake(link, now_ns);
    case Stage::kAnswer:
      return step_answer(link, now_ns);
  }
  return false;
}

bool LinkMoves::dial(End& end, int64_t now_ns) {
  const size_t way = end.tried()[end.way].rail;
  Result<UniqueFd> socket = end.name.made ? rails_->dial(end.name.peer, way) : rails_->dial_place(end.name.peer, way);
  // Nothing on this host leads there, and that will not change.
  const bool hopeless = !socket.ok() && !end.name.made && socket.error().code == Code::kInvalidUsage;
  if (hopeless) end.failed_ns = now_ns - kRefusedNs;
  if (hopeless) end.code = socket.error().code;
  if (!socket.ok()) return not_connected(end, socket.error(), now_ns);
  end.socket = std::move(socket).value();
  if (!watch(end.socket.get(), EPOLLIN | EPOLLOUT)) return failed(end, "epoll_ctl failed", false, now_ns);
  const Purpose purpose = end.name.made ? Purpose::kControlMove : Purpose::kControl;
  end.exchange.emplace(Role::kInitiator, purpose, rails_->credentials(), end.name.peer);
  end.stage = Stage::kConnecting;
  end.until_ns = now_ns + kConnectNs;
  if (!end.name.made) end.be_patient(now_ns);
  return true;
}

// Between the connection and the first beat of the mesh, nothing else notices a network that is lost while data is
// under way. (Keepalive probes only an idle connection, and the system sends again for a quarter of an hour.)
TcpOptions LinkMoves::while_meeting(bool can_move) const {
  TcpOptions options;
  options.user_timeout_ms = static_cast<int>((can_move ? options_.silence_ns : kUnacknowledgedNs) / kMs);
  return options;
}

// With the connection and the neighbour's hello together.
void LinkMoves::End::be_patient(int64_t now_ns) {
  until_ns = places.size() == 1 ? kNever : now_ns + (kTryNextNs << std::min(rounds, kMostDoublings));
}

bool LinkMoves::step_connecting(End& end, int64_t now_ns) {
  const Result<bool> connected = finish_connect(end.socket.get());
  if (!connected.ok()) return not_connected(end, connected.error(), now_ns);
  if (!connected.value()) {
    if (now_ns < end.until_ns) return false;
    end.tried()[end.way].last = Last::kSilence;
    failed(end, "no answer to a connection", false, now_ns);
    end.failed_ns = -1;  // no answer is no refusal
    return true;
  }
  end.tried()[end.way].last = Last::kAnswer;
  end.answered_ns = now_ns;
  end.answered = true;
  end.all_tried = false;
  end.stage = Stage::kHandshake;
  if (end.name.made) end.until_ns = now_ns + end.patience_ns;
  if (!end.name.made) set_tcp_options(end.socket.get(), while_meeting(end.ways.size() > 1));
  (void)watch(end.socket.get(), EPOLLIN);
  return true;
}

// A peer that lacks the secret, or belongs to another job, is another program in the place of the rank. That counts as
// a refusal. It happens for example where every host has the same private address. If there is no other place, the
// neighbour cannot be reached at all.
bool LinkMoves::handshake_failed(End& end, const Error& error, int64_t now_ns) {
  const bool lost = end.exchange->connection_lost();
  const bool foreign = !end.name.made && end.exchange->handshake().secret_differs();
  if (!lost) end.answered = false;
  if (foreign && end.places.size() == 1) end.failed_ns = now_ns - kRefusedNs;
  failed(end, error.message, !lost, now_ns);
  if (foreign && end.places.size() > 1) end.places.erase(end.places.begin() + static_cast<std::ptrdiff_t>(--end.way));
  return true;
}

bool LinkMoves::step_handshake(size_t link, int64_t now_ns) {
  End& end = ends_[link];
  const Result<bool> done = end.exchange->step(end.socket.get());
  if (!done.ok()) return handshake_failed(end, done.error(), now_ns);
  if (!done.value()) {
    if (!end.name.made && end.exchange->handshake().peer_rank() >= 0) end.until_ns = kNever;
    if (now_ns < end.until_ns) return false;
    end.patience_ns = std::min(2 * end.patience_ns, kMostPatienceNs);
    end.answered_ns = now_ns;
    failed(end, "its host answers, its process does not", false, now_ns);
    end.failed_ns = -1;  // no answer is no refusal
    return true;
  }
  if (!end.name.made) {
    settle_first(link, std::move(end.socket));
    return false;
  }
  MoveRecord ask;
  ask.out = end.name.out;
  ask.step = end.name.step;
  ask.number = end.asked = std::max(end.asked, end.taken) + 1;
  ask.came = links_.part(link);
  const std::string bytes = encode(ask);
  const Result<size_t> sent = send_bytes(end.socket.get(), std::as_bytes(std::span(bytes)));
  if (!sent.ok()) return failed(end, sent.error().message, false, now_ns);
  if (sent.value() != bytes.size()) return failed(end, "a new connection takes no data", false, now_ns);
  end.stage = Stage::kAnswer;
  end.until_ns = now_ns + kAnswerNs;
  return true;
}

bool LinkMoves::step_answer(size_t link, int64_t now_ns) {
  End& end = ends_[link];
  const Result<bool> whole = read_move_record(end.socket.get(), end.answer);
  if (!whole.ok()) return failed(end, whole.error().message, false, now_ns);
  if (!whole.value()) {
    if (now_ns < end.until_ns) return false;
    return failed(end, "no answer behind the handshake", false, now_ns);
  }
  const auto answer = decode_move_record(end.answer);
  if (!answer || answer->kind == MoveRecord::Kind::kAsk) return failed(end, "answered nonsense", true, now_ns);
  take_answer(link, *answer, now_ns);
  return end.away;
}

void LinkMoves::take_answer(size_t link, const MoveRecord& answer, int64_t now_ns) {
  End& end = ends_[link];
  if (answer.kind == MoveRecord::Kind::kGone) return give_up(link, "has given up its connection with this rank");
  if (answer.kind == MoveRecord::Kind::kYield) {
    drop_attempt(end);
    end.next_ns = now_ns + end.pause_ns;
    return;
  }
  end.taken = std::max(end.taken, answer.number);
  const size_t rail = end.ways[end.way].rail;
  settle(link, std::move(end.socket), rail, answer.came, end.why);
}

// The attempt over the present way has failed. Returns true: there is more to do (see step).
bool LinkMoves::failed(End& end, const std::string& what, bool refused, int64_t now_ns) {
  drop_attempt(end);
  end.tried()[end.way].what = what;
  end.tried()[end.way].at_ns = now_ns;
  ++end.way;
  end.refused += refused ? 1 : 0;
  if (end.failed_ns < 0) end.failed_ns = now_ns;
  return true;
}

void LinkMoves::end_round(size_t link, int64_t now_ns) {
  End& end = ends_[link];
  const bool gone = end.refused > 0 && !end.answered;
  end.begin_round();
  end.all_tried = true;
  end.next_ns = now_ns + end.pause_ns;
  if (!end.name.made) {
    ++end.rounds;
    if (end.failed_ns >= 0 && now_ns - end.failed_ns >= kRefusedNs)
      give_up(link, "cannot be reached: " + story(end, now_ns));
    return;
  }
  end.pause_ns = std::min(2 * end.pause_ns, kMostPauseNs);
  if (gone)
    give_up(link, "died: its connection ended without a goodbye (" + end.why +
                      "), and no connection with it can be made: " + story(end, now_ns));
}

void LinkMoves::give_up(size_t link, const std::string& what) {
  forget(link);
  links_.give_up(link, what, ends_[link].code);
}

std::string LinkMoves::story(const End& end, int64_t now_ns) const {
  std::string text;
  std::vector<Way> ways = end.name.made ? end.ways : end.places;
  std::ranges::sort(ways, {}, &Way::rail);
  for (const Way& way : ways) {
    const std::string name = end.name.made ? rails_->name(way.rail) : rails_->places(end.name.peer)[way.rail];
    text += (text.empty() ? "" : "; ") + name + ": ";
    text += way.what.empty() ? "was not tried" : way.what + ", " + ago(now_ns - way.at_ns);
  }
  return text;
}

// The link goes on over this connection.
void LinkMoves::settle(size_t link, UniqueFd socket, size_t rail, uint64_t came, const std::string& why) {
  End& end = ends_[link];
  drop_attempt(end);
  end.away = false;
  end.name.made = true;
  end.code = Code::kRemoteError;
  prove(end.name.peer, rail);
  for (Way& way : end.ways) {
    if (way.rail == rail) way.last = Last::kAnswer;
  }
  epoll_ctl(options_.epoll_fd, EPOLL_CTL_DEL, socket.get(), nullptr);
  rails_->adopt(socket.get(), rail);
  const Move move{end.on, rails_->name(rail), why};
  end.on = move.to;
  if (!links_.resume(link, std::move(socket), came, move)) forget(link);
}

void LinkMoves::settle_first(size_t link, UniqueFd socket) {
  End& end = ends_[link];
  drop_attempt(end);
  end.away = false;
  end.name.made = true;
  end.code = Code::kRemoteError;
  end.on = rails_->rail_of(socket.get());
  for (const Way& way : end.ways) {
    if (rails_->name(way.rail) == end.on) prove(end.name.peer, way.rail);
  }
  epoll_ctl(options_.epoll_fd, EPOLL_CTL_DEL, socket.get(), nullptr);
  if (!links_.resume(link, std::move(socket), 0, {})) forget(link);
}

}  // namespace trestle
