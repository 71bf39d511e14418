// The connections of a control mesh: reading, frames, disconnects, heartbeats.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/rank_names.h"
#include "base/text/byte_text.h"
#include "base/text/value_text.h"
#include "control_mesh/control_mesh_impl.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

// Returns true for Unix sockets, which have no such information: there the peer is on this machine.
bool kernel_answers(int fd, int64_t within_ns) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return true;
  return static_cast<int64_t>(info.tcpi_last_ack_recv) * 1'000'000 < within_ns;
}

// A stopped process is silent on every connection of every communicator, and a slow one is silent again and again. So
// each process is reported at most once a minute. `name` ends with the process, "(host a, pid 12)", where that is
// known.
bool first_to_tell_silence(const std::string& name, int64_t now_ns) {
  constexpr int64_t kOnceInNs = 60'000'000'000;
  constexpr size_t kMostProcesses = 4096;
  struct Told {
    Mutex mutex;
    std::map<std::string, int64_t> at_ns TRESTLE_GUARDED_BY(mutex);
  };
  static constinit PerProcess<Told> of_process;
  const size_t process = name.find('(');
  if (process == std::string::npos) return true;
  Told& told = of_process.get();
  const MutexLock lock(told.mutex);
  if (told.at_ns.size() >= kMostProcesses) told.at_ns.clear();
  const auto [entry, first] = told.at_ns.try_emplace(name.substr(process), now_ns);
  if (!first && now_ns - entry->second < kOnceInNs) return false;
  entry->second = now_ns;
  return true;
}

size_t most_payload(int32_t ranks) {
  return static_cast<size_t>(ranks) * (kMaxBlobBytes + 4) + kMaxSentence;
}

}  // namespace

ControlMesh::Impl::Impl(const ControlSettings& settings, bool over_streams)
    : settings_(settings),
      clock_(settings.clock != nullptr ? *settings.clock : monotonic_clock()),
      epoll_(UniqueFd::open([=] { return over_streams ? -1 : epoll_create1(EPOLL_CLOEXEC); })),
      last_poll_ns_(clock_.now_ns()) {
  std::vector<std::string> names;
  for (int32_t r = 0; r < settings.ranks; ++r) names.push_back("rank " + std::to_string(r));
  names_ = std::move(names);
}

Status ControlMesh::Impl::add_links(std::vector<ControlConnection> out, std::vector<ControlConnection> in) {
  if (!epoll_) return Error{Code::kSystemError, std::string("epoll_create1: ") + std::strerror(errno)};
  const auto steps = static_cast<size_t>(dissemination_steps(settings_.ranks));
  CHECK(out.size() == steps && in.size() == steps, "a control mesh needs one connection per step and direction");
  links_.reserve(2 * steps);
  for (ControlConnection& connection : out) TRY(add_link(std::move(connection), out_));
  for (ControlConnection& connection : in) TRY(add_link(std::move(connection), in_));
  met_ = std::ranges::all_of(links_, &ControlLink::made);
  return {};
}

Status ControlMesh::Impl::add_link(ControlConnection connection, std::vector<size_t>& side) {
  const size_t index = links_.size();
  links_.emplace_back(connection.peer, std::move(connection.socket), most_payload(settings_.ranks));
  if (settings_.keeps_frames) links_[index].keep_frames();
  links_[index].last_heard_ns = last_poll_ns_;
  side.push_back(index);
  if (!links_[index].made) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, links_[index].fd(), &event) != 0)
    return Error{Code::kSystemError, std::string("epoll_ctl: ") + std::strerror(errno)};
  return {};
}

// The link of step k that this rank sends to its right on is the one that the neighbour has on its left.
Status ControlMesh::Impl::add_streams(std::unique_ptr<HostStreams> streams, const std::vector<std::string>& addresses,
                                      const std::vector<std::string>& names) {
  streams_ = std::move(streams);
  TRY(streams_->connect(mesh_neighbours(settings_.rank, settings_.ranks), addresses, names));
  const auto steps = static_cast<uint64_t>(dissemination_steps(settings_.ranks));
  for (const bool to_right : {true, false}) {
    for (uint64_t k = 0; k < steps; ++k) {
      const int64_t distance = int64_t{1} << k;
      const int64_t peer = settings_.rank + (to_right ? distance : settings_.ranks - distance);
      (to_right ? out_ : in_).push_back(links_.size());
      const uint64_t rightward = 2 * k;
      links_.emplace_back(static_cast<int32_t>(peer % settings_.ranks), *streams_, rightward + !to_right,
                          rightward + to_right, most_payload(settings_.ranks));
      links_.back().last_heard_ns = last_poll_ns_;
    }
  }
  met_ = true;
  return {};
}

// No event tells when a stream takes bytes again.
void ControlMesh::Impl::poll_streams(int64_t now_ns) {
  const Result<bool> polled = streams_->poll();
  if (!polled.ok()) report({false, settings_.rank, polled.error()}, false);
  const bool news = !polled.ok() || polled.value();
  for (size_t link = 0; link < links_.size(); ++link) {
    if (links_[link].open() && links_[link].has_output()) links_[link].flush();
    if (news) read_link(link, now_ns);
  }
}

void ControlMesh::Impl::watch_writable(size_t link) {
  ControlLink& at = links_[link];
  if (at.fd() < 0 || at.wants_writable == at.has_output()) return;
  at.wants_writable = at.has_output();
  epoll_event event{};
  event.events = EPOLLIN | (at.wants_writable ? EPOLLOUT : 0u);
  event.data.u64 = link;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, at.fd(), &event);
}

void ControlMesh::Impl::send(size_t link, const ControlFrame& frame) {
  links_[link].send(frame);
  watch_writable(link);
}

void ControlMesh::Impl::send_all(const ControlFrame& frame) {
  for (size_t i = 0; i < links_.size(); ++i) send(i, frame);
}

void ControlMesh::Impl::poll_links(int64_t now_ns) {
  if (streams_) return poll_streams(now_ns);
  std::array<epoll_event, 64> ready;
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  bool of_moves = false;
  for (int i = 0; i < count; ++i) {
    const size_t link = ready[static_cast<size_t>(i)].data.u64;
    of_moves = of_moves || link == LinkMoves::kKey;
    if (link == LinkMoves::kKey) continue;
    const uint32_t events = ready[static_cast<size_t>(i)].events;
    if ((events & EPOLLOUT) != 0) {
      links_[link].flush();
      watch_writable(link);
    }
    if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read_link(link, now_ns);
  }
  tend_moves(of_moves, now_ns);
}

void ControlMesh::Impl::read_link(size_t link, int64_t now_ns) {
  ControlLink& at = links_[link];
  if (!at.open()) return;
  std::vector<ControlFrame> frames;
  std::string reason;
  const ControlLink::Reading reading = at.read(frames, reason);
  if (reading != ControlLink::Reading::kLost || !frames.empty()) {
    at.last_heard_ns = now_ns;
    at.silence_told = false;
  }
  for (ControlFrame& frame : frames) take_frame(link, frame);
  if (reading == ControlLink::Reading::kMalformed) {
    malformed(at.peer());
    end_link(link);
  }
  if (reading == ControlLink::Reading::kEnded) link_ended(link, reason, now_ns);
  if (reading == ControlLink::Reading::kLost) link_lost(link, reason, now_ns);
  if (at.owes_ack()) send(link, {ControlKind::kAck, 0, 0, ""});
}

void ControlMesh::Impl::take_frame(size_t link, ControlFrame& frame) {
  switch (frame.kind) {
    case ControlKind::kHeartbeat:
      links_[link].watched = true;
      return;
    case ControlKind::kError:
      return take_failure(frame, false);
    case ControlKind::kAbort:
      return take_failure(frame, true);
    case ControlKind::kBye:
      return take_bye(link, frame);
    case ControlKind::kLetter:
      return take_letter(link, frame);
    case ControlKind::kGather:
    case ControlKind::kBarrier:
      return take_gather(link, frame);
    case ControlKind::kAck:
      return;
  }
}

void ControlMesh::Impl::take_gather(size_t link, ControlFrame& frame) {
  const GatherKey key{frame.kind == ControlKind::kBarrier, frame.seq};
  const auto gather = gathers_.try_emplace(key, settings_.rank, settings_.ranks).first;
  const bool right_link = frame.step < in_.size() && in_[frame.step] == link;
  if (!right_link || !gather->second.receive(frame.step, std::move(frame.payload)))
    return malformed(links_[link].peer());
  advance(key, gather->second);
}

void ControlMesh::Impl::advance(const GatherKey& key, Dissemination& gather) {
  bool sane = true;
  for (Dissemination::Message& message : gather.advance(sane)) {
    ControlFrame frame;
    frame.kind = key.first ? ControlKind::kBarrier : ControlKind::kGather;
    frame.step = static_cast<uint8_t>(message.step);
    frame.seq = key.second;
    frame.payload = std::move(message.payload);
    send(out_[static_cast<size_t>(message.step)], frame);
  }
  if (!sane) malformed(links_[in_[static_cast<size_t>(gather.awaited_step())]].peer());
}

void ControlMesh::Impl::start_gather(const GatherKey& key, std::string mine) {
  const auto gather = gathers_.try_emplace(key, settings_.rank, settings_.ranks).first;
  gather->second.start(std::move(mine));
  advance(key, gather->second);
}

// Returns the gather if it is done, nullptr while it is not, an error if it can never be done.
Result<Dissemination*> ControlMesh::Impl::gather_if_done(const GatherKey& key) {
  const auto found = gathers_.find(key);
  CHECK(found != gathers_.end() && found->second.started(), "the result of a collective that was never started");
  Dissemination& gather = found->second;
  if (gather.done()) return &gather;
  if (!failure_) {
    const ControlLink& awaited = links_[in_[static_cast<size_t>(gather.awaited_step())]];
    if (awaited.ended())
      report({false,
              settings_.rank,
              {Code::kRemoteError, name(awaited.peer()) + " left the communicator while other ranks waited for it"}},
             true);
  }
  if (failure_) return failure_->error;
  return static_cast<Dissemination*>(nullptr);
}

int32_t ControlMesh::Impl::awaited(const GatherKey& key) const {
  const auto found = gathers_.find(key);
  if (found == gathers_.end() || !found->second.started() || found->second.done()) return -1;
  return links_[in_[static_cast<size_t>(found->second.awaited_step())]].peer();
}

std::optional<bool> ControlMesh::Impl::host_answers(int32_t rank, int64_t within_ns) const {
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].peer() != rank || links_[i].ended() || !links_[i].made) continue;
    return links_[i].open() ? answers(links_[i], within_ns) : moves_->answers(i, within_ns, clock_.now_ns());
  }
  return std::nullopt;
}

bool ControlMesh::Impl::answers(const ControlLink& link, int64_t within_ns) const {
  if (link.fd() < 0) return true;  // this very host
  return (settings_.host_answers != nullptr ? settings_.host_answers : kernel_answers)(link.fd(), within_ns);
}

void ControlMesh::Impl::take_failure(ControlFrame& frame, bool abort) {
  if (auto told = decode_failure_report(frame.payload, settings_.ranks)) {
    // A rank that is still creating another communicator uses that communicator's rank numbers.
    if (auto own = in_numbers_of(names_, name(settings_.rank), told->error.message))
      told->error.message = std::move(*own);
    report({abort, told->origin, std::move(told->error)}, false);
  }
}

void ControlMesh::Impl::report(Failure failure, bool own_call) {
  if (failure_) return;
  failure.error.message.resize(std::min(failure.error.message.size(), kMaxSentence));
  ControlFrame frame;
  frame.kind = failure.abort ? ControlKind::kAbort : ControlKind::kError;
  frame.payload = encode(FailureReport{failure.origin, failure.error});
  failure_ = std::move(failure);
  send_all(frame);
  if (!own_call) events_.push_back({Event::Kind::kFailure});
}

// A rank's own goodbye is the last frame of each of its links. It may come over one link while another one is moving
// and still has earlier frames to send again, so each link ends with its own.
void ControlMesh::Impl::take_bye(size_t link, ControlFrame& frame) {
  ByteReader in(frame.payload);
  const auto rank = in.integer<int32_t>();
  const bool by_exit = in.integer<uint8_t>() != 0;
  if (!in.at_end() || rank < 0 || rank >= settings_.ranks || rank == settings_.rank) return;
  if (rank == links_[link].peer()) links_[link].bye_came = true;
  if (!left_.insert(rank).second) return;
  send_all(frame);
  events_.push_back({Event::Kind::kBye, rank, "", by_exit});
}

void ControlMesh::Impl::say_bye(bool by_exit) {
  ControlFrame frame;
  frame.kind = ControlKind::kBye;
  frame.payload = ByteWriter().integer(settings_.rank).integer(static_cast<uint8_t>(by_exit)).take();
  send_all(frame);
}

void ControlMesh::Impl::end_link(size_t link) {
  ControlLink& at = links_[link];
  if (at.fd() >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at.fd(), nullptr);
  at.end();
  if (moves_) moves_->forget(link);
}

void ControlMesh::Impl::link_ended(size_t link, const std::string& reason, int64_t now_ns) {
  if (can_move(link) && !links_[link].bye_came) return move(link, reason, now_ns, now_ns);
  end_for(link, "died: its connection ended without a goodbye (" + reason + ")");
}

// The peer's host has vanished from the network, or the network has. Its process may live.
void ControlMesh::Impl::link_lost(size_t link, const std::string& reason, int64_t now_ns) {
  const ControlLink& at = links_[link];
  // A process that was stopped or starved could hear nothing.
  const bool was_away = beats() && now_ns - last_poll_ns_ > shortest_silence_ns() / 2;
  // Nor does silence mean anything before the first heartbeat. A rail that has just failed is tried last.
  const int64_t heard_ns = !beats() ? now_ns - 1 : was_away ? now_ns : at.last_heard_ns;
  if (can_move(link) && !at.bye_came) return move(link, reason, heard_ns, now_ns);
  const std::string host = at.host().empty() ? "its host" : at.host();
  end_for(link, "is lost: its connection ended without a goodbye (" + reason + "), and " + host +
                    " was last heard from " + ago(now_ns - at.last_heard_ns));
}

// `what` follows the peer's name. A peer that has left is not missed.
void ControlMesh::Impl::end_for(size_t link, const std::string& what) {
  const int32_t peer = links_[link].peer();
  end_link(link);
  if (left_.contains(peer) || closed_) return;
  report({false, settings_.rank, {Code::kRemoteError, name(peer) + " " + what}}, false);
}

void ControlMesh::Impl::malformed(int32_t peer) {
  report({false, settings_.rank, {Code::kRemoteError, name(peer) + " sent malformed data over its control connection"}},
         false);
}

// Ranks that share sockets hear of each other's end at once, and their host is this one.
bool ControlMesh::Impl::beats() const {
  return !streams_ && (listener_ != nullptr || moves_) && met_ && settings_.heartbeat_ns > 0 && !closed_;
}

void ControlMesh::Impl::begin_beats() {
  next_beat_ns_ = last_poll_ns_ = clock_.now_ns();
  for (ControlLink& link : links_) {
    link.last_heard_ns = last_poll_ns_;
    // A stopped peer takes no data for as long as it is stopped, but it is not lost. So the kernel must not give it up.
    if (link.fd() >= 0) set_user_timeout(link.fd(), 0);
  }
}

void ControlMesh::Impl::beat(int64_t now_ns) {
  if (!beats()) return;
  if (now_ns - last_poll_ns_ > shortest_silence_ns() / 2) {
    // This process was stopped or starved. So the peers' silence in that time means nothing.
    for (ControlLink& link : links_) link.last_heard_ns = now_ns;
  }
  last_poll_ns_ = now_ns;
  if (now_ns >= next_beat_ns_) {
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].open() && !links_[i].has_output()) send(i, ControlFrame{});
    }
    next_beat_ns_ = now_ns + shortest_silence_ns() / 3;
  }
  for (size_t i = 0; i < links_.size(); ++i) look_for_silence(i, now_ns);
}

// How long a neighbour may be silent before its kernel is asked.
int64_t ControlMesh::Impl::silence_ns(size_t link) const {
  return can_move(link) ? std::min(settings_.heartbeat_ns, rail_silence_ns_) : settings_.heartbeat_ns;
}

int64_t ControlMesh::Impl::shortest_silence_ns() const {
  return moves_ ? std::min(settings_.heartbeat_ns, rail_silence_ns_) : settings_.heartbeat_ns;
}

void ControlMesh::Impl::look_for_silence(size_t index, int64_t now_ns) {
  ControlLink& link = links_[index];
  const int64_t silent_ns = now_ns - link.last_heard_ns;
  if (link.ended() || silent_ns < silence_ns(index)) return;
  if (link.away()) {
    if (moves_->answers(index, settings_.heartbeat_ns, now_ns)) tell_silence(link, now_ns);
    return;
  }
  // A peer that sends no heartbeats yet is judged alike: its host acknowledges data, unless its rail is lost.
  const bool answers_now = answers(link, silence_ns(index));
  if (!answers_now && can_move(index))
    return move(index, "its host did not answer for " + duration_text(silence_ns(index)), link.last_heard_ns, now_ns);
  if (!answers_now) {
    report({false,
            settings_.rank,
            {Code::kRemoteError, name(link.peer()) + " is lost: its host did not answer for " +
                                     duration_text(settings_.heartbeat_ns) + " (TRESTLE_HEARTBEAT)"}},
           false);
    return;
  }
  tell_silence(link, now_ns);
}

void ControlMesh::Impl::tell_silence(ControlLink& link, int64_t now_ns) {
  if (!link.watched || now_ns - link.last_heard_ns < settings_.heartbeat_ns) return;
  if (!link.silence_told && first_to_tell_silence(name(link.peer()), now_ns))
    LOG(kWarn, kBootstrap, "%s has been silent for %s but its host answers: the process is stopped or very busy",
        name(link.peer()).c_str(), duration_text(settings_.heartbeat_ns).c_str());
  link.silence_told = true;
}

int64_t ControlMesh::Impl::next_due_ns() const {
  constexpr int64_t kAgainNs = 20'000'000;
  if (!events_.empty() && listener_ != nullptr) return 0;
  const auto is_full = [](const ControlLink& link) { return link.fd() < 0 && link.open() && link.has_output(); };
  if (streams_ && std::ranges::any_of(links_, is_full)) return clock_.now_ns() + kAgainNs;
  const int64_t moves_due = moves_ && !closed_ ? moves_->next_due_ns() : std::numeric_limits<int64_t>::max();
  if (!beats() || links_.empty()) return moves_due;
  int64_t due = std::min(next_beat_ns_, moves_due);
  for (size_t i = 0; i < links_.size(); ++i) {
    const ControlLink& link = links_[i];
    const int64_t silent = link.last_heard_ns + silence_ns(i);
    // A link that was silent at the last look is looked at again with the next beat.
    if (link.open() && !link.silence_told && silent > last_poll_ns_) due = std::min(due, silent);
  }
  return due;
}

std::string ControlMesh::Impl::name(int32_t rank) const {
  return names_[static_cast<size_t>(rank)];
}

}  // namespace trestle
