// Several rails in one transport: driving them, sleeping on all of them, noticing those that fail, and the end.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/message/rail_transport.h"

namespace trestle {
namespace {

constexpr uint32_t kTickEveryRounds = 64;
constexpr int64_t kTickNs = 50'000'000;  // while this rank sleeps and something is to be watched

}  // namespace

Status RailTransport::watch_rails() {
  if (set_.rails.size() < 2) return {};
  epoll_ = UniqueFd::open([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  timer_ = UniqueFd::open([] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); });
  bool watched = epoll_ && timer_;
  const auto add = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    watched = watched && (fd < 0 || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  };
  add(timer_.get());
  for (const std::unique_ptr<Rail>& rail : set_.rails) add(rail->event_fd());
  if (watched) return {};
  return Error{Code::kSystemError, std::string("the rails cannot be watched: ") + std::strerror(errno)};
}

Result<bool> RailTransport::drive_rails() {
  bool moved = false;
  for (const std::unique_ptr<Rail>& rail : set_.rails) moved = TRY(rail->progress()) || moved;
  return moved;
}

Result<bool> RailTransport::progress() {
  if (error_) return *error_;
  if (closed_) return false;
  Result<bool> moved = drive_rails();
  if (!moved.ok()) return fail(std::move(moved).error());
  if (!several_.empty() && ++rounds_ % kTickEveryRounds == 0) {
    if (Status ticked = tick(); !ticked.ok()) return fail(std::move(ticked).error());
  }
  return moved;
}

Status RailTransport::gone(int32_t rank) {
  return Error{Code::kRemoteError, name(rank) + " cannot be reached over any rail: " + at(rank).rails->story(now())};
}

Status RailTransport::tick() {
  const int64_t now_ns = now();
  if (now_ns - faults_seen_ns_ >= kLookAtRailsNs) {
    faults_seen_ns_ = now_ns;
    for (size_t rail = 0; rail < set_.rails.size(); ++rail) {
      const std::string why = set_.rails[rail]->fault();
      if (!why.empty()) TRY(fault(rail, why));
    }
  }
  for (const int32_t rank : several_) {
    Peer& peer = at(rank);
    if (!peer.left && !peer.rails->tick(now_ns) && !peer.has_left() && !closed_) return gone(rank);
  }
  return {};
}

Status RailTransport::fault(size_t rail, const std::string& why) {
  for (const int32_t rank : several_) {
    Peer& peer = at(rank);
    const auto path =
        std::find_if(peer.paths.begin(), peer.paths.end(), [=](const RailPath& p) { return p.rail == rail; });
    if (path == peer.paths.end() || peer.left) continue;
    if (!peer.rails->is_up(static_cast<size_t>(path - peer.paths.begin()))) continue;
    set_.rails[rail]->drop(rank);
    TRY(lost(rail, rank, Error{Code::kSystemError, why}));
  }
  return {};
}

void RailTransport::look_everywhere() {
  for (const std::unique_ptr<Rail>& rail : set_.rails) rail->look_everywhere();
  rounds_ = kTickEveryRounds - 1;
}

int RailTransport::event_fd() const {
  return epoll_ ? epoll_.get() : set_.rails[0]->event_fd();
}

bool RailTransport::needs_ticks() const {
  return std::any_of(several_.begin(), several_.end(), [this](int32_t rank) {
    const Peer& peer = at(rank);
    return !peer.left && peer.rails->needs_ticks();
  });
}

void RailTransport::arm_timer(bool on) {
  if (on == timer_on_) return;
  timer_on_ = on;
  itimerspec when{};
  if (on) when.it_value.tv_nsec = when.it_interval.tv_nsec = kTickNs;
  (void)::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool RailTransport::prepare_sleep() {
  if (error_) return false;
  for (size_t rail = 0; rail < set_.rails.size(); ++rail) {
    if (set_.rails[rail]->prepare_sleep()) continue;
    for (size_t before = 0; before < rail; ++before) set_.rails[before]->finish_sleep();
    return false;
  }
  if (!several_.empty()) arm_timer(needs_ticks());
  return true;
}

void RailTransport::finish_sleep() {
  for (const std::unique_ptr<Rail>& rail : set_.rails) rail->finish_sleep();
  if (!timer_on_) return;
  uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof expirations) > 0) rounds_ = kTickEveryRounds - 1;
}

// ---- the end

// With a peer that is reached over several rails, everything is acknowledged before the goodbye, and the goodbyes of
// all rails are answered before any rail ends: two ranks may end their rails in different orders. A peer that is not
// driven acknowledges nothing. So in the last quarter of the time the goodbye goes without that (hurry). The peer finds
// it behind the data, if no data is lost with a rail.
void RailTransport::close_several(int64_t deadline_ns) {
  const int64_t hurry_ns = now() + (deadline_ns - now()) / 4 * 3;
  for (;;) {
    const bool hurry = now() >= hurry_ns;
    bool over = true;
    for (const int32_t rank : several_) over = close_peer(at(rank), hurry) && over;
    if (over) return;
    const Result<bool> moved = drive_rails();
    if (!moved.ok() || !tick().ok()) return;
    const int64_t left_ns = (hurry ? deadline_ns : hurry_ns) - now();
    if (hurry && left_ns <= 0) return;
    if (moved.value() || !prepare_sleep()) continue;
    pollfd wait{event_fd(), POLLIN, 0};
    (void)::poll(&wait, 1, static_cast<int>(std::max<int64_t>(0, left_ns) / 1'000'000 + 1));
    finish_sleep();
  }
}

// True: this rank's goodbye has gone over every rail and is answered, or nothing leads to the peer. A rank whose peer
// has left may still wait for an acknowledgement before its own goodbye. A rail that ended before would count as lost
// at the peer.
bool RailTransport::close_peer(Peer& peer, bool hurry) {
  if (hurry) peer.rails->hurry();
  if (hurry || peer.has_left() || peer.rails->all_arrived()) peer.protocol->close(true);
  if (nothing_up(peer)) return true;
  if (!peer.protocol->is_closed()) return false;
  for (size_t path = 0; path < peer.rails->count(); ++path) {
    const bool open = !peer.protocol->goodbye_answered(path) || peer.protocol->has_goodbye(path);
    if (peer.rails->is_up(path) && open) return false;
  }
  return true;
}

void RailTransport::close(int linger_ms) {
  if (closed_) return;
  says_goodbye_ = linger_ms > 0 && !error_;
  const int64_t deadline_ns = now() + int64_t{linger_ms} * 1'000'000;
  closed_ = true;
  if (says_goodbye_ && !several_.empty()) close_several(deadline_ns);
  for (Peer& peer : peers_) {
    if (peer.protocol != nullptr) peer.protocol->close(says_goodbye_);
  }
  for (const std::unique_ptr<Rail>& rail : set_.rails) {
    const int64_t left_ms = (deadline_ns - now()) / 1'000'000;
    rail->close(says_goodbye_ ? static_cast<int>(std::clamp<int64_t>(left_ms, 1, linger_ms)) : 0);
  }
  book_.close(now());
}

}  // namespace trestle
