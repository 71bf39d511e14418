#include "rendezvous/server/gatherings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "rendezvous/rank_info.h"

namespace trestle {
namespace {

// The jobs of which this process has held a rendezvous where a communicator was made.
struct Made {
  Mutex mutex;
  std::set<JobId> jobs TRESTLE_GUARDED_BY(mutex);
};
constinit PerProcess<Made> made;

// `now`: one is made now.
bool made_before(const JobId& job, bool now) {
  Made& all = made.get();
  const MutexLock lock(all.mutex);
  return now ? !all.jobs.insert(job).second : all.jobs.contains(job);
}

}  // namespace

Gatherings::Gatherings(const RendezvousOptions& options, std::shared_ptr<RendezvousBell> bell)
    : place_(options.place),
      way_out_(options.way_out),
      job_(options.credentials.job),
      bell_(std::move(bell)),
      any_complete_(made_before(job_, false)) {
  all_.emplace_back(options.deadline_ns, monotonic_clock().now_ns());
}

Gathering& Gatherings::seat(const JoinRequest& request, const std::string& from, bool own, int64_t now) {
  Gathering* const first = conflict_of(request);
  Gathering& gathering = first != nullptr ? refuse_both(*first, request, from) : gathering_for(request, now);
  const bool limited = request.time_left_ns > 0;
  gathering.patience_ns = std::max(gathering.patience_ns, limited ? request.time_left_ns : kNever);
  gathering.seated.emplace_back(request.rank, request.lineage.empty() ? 0 : request.lineage.front());
  if (limited)
    gathering.deadline_ns = std::min(gathering.deadline_ns, now + std::min(request.time_left_ns, kNever / 2 - now));
  ++gathering.clients;
  gathering.has_own = gathering.has_own || own;
  gathering.board.arrive(request, from, own);  // after a failure, for the number of those that are to be told
  return gathering;
}

// At a named place, a gathering in which that rank is another process, which waits or is in a living communicator.
Gathering* Gatherings::conflict_of(const JoinRequest& request) {
  if (way_out_.empty()) return nullptr;
  look_at_holds();
  for (Gathering& one : all_) {
    if (one.board.has_another(request) && (!one.board.decided() || lives(one))) return &one;
  }
  // Only rank 0 holds a rendezvous, so another rank 0 is of another job, whatever has happened here.
  const bool is_guest = request.rank == 0 && !are_kin(request.lineage, process_lineage());
  return is_guest ? &open_or_newest() : nullptr;
}

// Nobody can know which ranks belong together. So those that are there fail, those that wait here, and the newcomer.
// Ranks that come later get the sentence, too.
Gathering& Gatherings::refuse_both(Gathering& first, const JoinRequest& second, const std::string& from) {
  const bool lived = lives(first);
  const std::string advice = "; two jobs meet at " + place_ + ": " + way_out_ +
                             (lived ? " (or the rank was started again before its end was noticed)" : "");
  const Error error = first.board.twice(second, from, own_rank_name(0) + ", which holds the rendezvous", advice);
  LOG(kWarn, kBootstrap, "%s", error.message.c_str());
  if (lived) first.board.fail(error);
  if (lived) fail_communicator(first, error);
  Gathering* told = nullptr;
  for (Gathering& one : all_) {
    if (one.board.decided()) continue;
    one.board.fail(error);
    one.two_jobs = true;
    told = &one;
  }
  if (told != nullptr) return *told;
  Gathering& last = open_gathering(monotonic_clock().now_ns());
  last.board.fail(error);
  last.two_jobs = true;
  return last;
}

Gathering& Gatherings::gathering_for(const JoinRequest& request, int64_t now) {
  if (way_out_.empty()) return all_.front();
  for (Gathering& one : all_) {
    const RendezvousBoard& board = one.board;
    // A wrong number of ranks is noticed where it can only be wrong. Later some ranks may make a communicator of their
    // own.
    const bool same_size = !any_complete_ || board.nranks() == 0 || board.nranks() == request.nranks;
    if (!board.decided() && !board.has(request.rank) && same_size) return one;
  }
  // A late rank gets the reason of a failure, but only once. A rank whose process has ended comes again as another one.
  Gathering& newest = all_.back();
  const bool is_told = newest.was_here(request) || newest.board.left() == request.rank;
  return newest.board.failed() && !is_told ? newest : open_gathering(now);
}

Gathering& Gatherings::open_gathering(int64_t now) {
  look_at_holds();
  for (auto one = all_.begin(); one != all_.end();) {
    const auto at = one++;
    if (at->over(now) && !lives(*at)) all_.erase(at);
  }
  return all_.emplace_back(kNever, now);
}

void Gatherings::complete(Gathering& gathering) {
  if (std::exchange(gathering.counted, true)) return;
  any_complete_ = true;
  (void)made_before(job_, true);
  for (Gathering& one : all_) one.two_jobs = false;
}

Gathering& Gatherings::open_or_newest() {
  const auto open = std::ranges::find_if(all_, [](const Gathering& one) { return !one.board.decided(); });
  return open == all_.end() ? all_.back() : *open;
}

Gathering& Gatherings::lacking(int32_t rank) {
  const auto waits =
      std::ranges::find_if(all_, [rank](const Gathering& one) { return !one.board.decided() && !one.board.has(rank); });
  if (waits != all_.end()) return *waits;
  const bool all_came = !way_out_.empty() && all_.back().board.complete() && !all_.back().board.failed();
  return all_came ? open_gathering(monotonic_clock().now_ns()) : all_.back();
}

RendezvousHeld Gatherings::hold() {
  const MutexLock lock(mutex_);
  if (ends_) return nullptr;
  const auto state = std::make_shared<RendezvousHold>(bell_);
  holds_.push_back(state);
  return {state.get(), [state](RendezvousHold*) { state->release(); }};
}

bool Gatherings::finished(int64_t now) {
  const MutexLock lock(mutex_);
  const bool late = std::ranges::any_of(all_, [&](const Gathering& one) { return !one.over(now); });
  ends_ = !late && std::ranges::all_of(holds_, [](const RendezvousHeld& hold) { return hold->released(); });
  return ends_;
}

void Gatherings::close() {
  const MutexLock lock(mutex_);
  ends_ = true;
}

// Notes which communicators have ended.
void Gatherings::look_at_holds() {
  const MutexLock lock(mutex_);
  std::erase_if(holds_, [this](const RendezvousHeld& hold) {
    if (!hold->released()) return false;
    for (Gathering& one : all_) one.ended = one.ended || hold->is_of(one.job);
    return true;
  });
}

// Its communicator lives as long as rank 0's process does not say otherwise.
bool Gatherings::lives(const Gathering& gathering) const {
  const RendezvousBoard& board = gathering.board;
  return !way_out_.empty() && gathering.has_own && board.complete() && !board.failed() && !gathering.ended;
}

void Gatherings::fail_communicator(const Gathering& gathering, const Error& error) {
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
