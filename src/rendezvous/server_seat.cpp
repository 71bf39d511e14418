// Which of a rendezvous's gatherings a rank belongs to.
#include <algorithm>

#include "rendezvous/rank_info.h"
#include "rendezvous/server_impl.h"

namespace trestle {

// `own`: the rank is of this process.
Gathering& RendezvousServer::seat(const JoinRequest& request, const std::string& from, bool own, int64_t now) {
  Gathering* const first = conflict_of(request);
  Gathering& gathering = first != nullptr ? refuse_both(*first, request, from) : gathering_for(request);
  const bool limited = request.time_left_ns > 0;
  gathering.patience_ns = std::max(gathering.patience_ns, limited ? request.time_left_ns : kNever);
  gathering.seated.emplace_back(request.rank, request.lineage.empty() ? 0 : request.lineage.front());
  if (limited)
    gathering.deadline_ns = std::min(gathering.deadline_ns, now + std::min(request.time_left_ns, kNever / 2 - now));
  gathering.has_own = gathering.has_own || own;
  gathering.board.arrive(request, from, own);  // after a failure, for the number of those that are to be told
  return gathering;
}

// At a named place, a gathering in which that rank is another process, which waits or is in a living communicator.
Gathering* RendezvousServer::conflict_of(const JoinRequest& request) {
  if (options_.way_out.empty()) return nullptr;
  look_at_holds();
  for (Gathering& one : gatherings_) {
    if (one.board.has_another(request) && (!one.board.decided() || lives(one))) return &one;
  }
  return nullptr;
}

// Nobody can know which ranks belong together. So those that are there fail, and the newcomer. Ranks that come later
// get the sentence, too.
Gathering& RendezvousServer::refuse_both(Gathering& first, const JoinRequest& second, const std::string& from) {
  const bool lived = lives(first);
  first.board.come_twice(second, from, "; two jobs meet at " + options_.place + ": " + options_.way_out);
  const Error error = *first.board.failure();
  LOG(kWarn, kBootstrap, "%s", error.message.c_str());
  first.two_jobs = !lived;
  if (!lived) return first;
  fail_communicator(first, error);
  Gathering& told = open_gathering();
  told.board.fail(error);
  told.two_jobs = true;
  return told;
}

Gathering& RendezvousServer::gathering_for(const JoinRequest& request) {
  if (options_.way_out.empty()) return gatherings_.front();
  for (Gathering& one : gatherings_) {
    const RendezvousBoard& board = one.board;
    // A wrong number of ranks is noticed where it can only be wrong. Later some ranks may make a communicator of their
    // own.
    const bool same_size = !any_complete_ || board.nranks() == 0 || board.nranks() == request.nranks;
    if (!board.decided() && !board.has(request.rank) && same_size) return one;
  }
  // A late rank gets the reason of a failure, but only once. A rank whose process has ended comes again as another one.
  Gathering& newest = gatherings_.back();
  const bool is_told = newest.was_here(request) || newest.board.left() == request.rank;
  return newest.board.failed() && !is_told ? newest : open_gathering();
}

Gathering& RendezvousServer::open_gathering() {
  const int64_t now = monotonic_clock().now_ns();
  look_at_holds();
  for (auto one = gatherings_.begin(); one != gatherings_.end();) {
    const auto at = one++;
    if (over(*at, now) && !lives(*at)) gatherings_.erase(at);
  }
  return gatherings_.emplace_back(kNever, now);
}

// Notes which communicators have ended.
void RendezvousServer::look_at_holds() {
  const MutexLock lock(mutex_);
  std::erase_if(holds_, [this](const RendezvousHeld& hold) {
    if (!hold->released()) return false;
    for (Gathering& one : gatherings_) one.ended = one.ended || hold->is_of(one.job);
    return true;
  });
}

// Its communicator lives as long as rank 0's process does not say otherwise.
bool RendezvousServer::lives(const Gathering& gathering) const {
  const RendezvousBoard& board = gathering.board;
  return !options_.way_out.empty() && gathering.has_own && board.complete() && !board.failed() && !gathering.ended;
}

void RendezvousServer::fail_communicator(const Gathering& gathering, const Error& error) {
  RendezvousHeld found;
  {
    const MutexLock lock(mutex_);
    for (const RendezvousHeld& hold : holds_) {
      if (hold->is_of(gathering.job)) found = hold;
    }
  }
  if (found != nullptr) found->conflict(error);
}

}  // namespace trestle
