// Gathering: the ranks of one communicator at a rendezvous, until all have come and are connected, and the members
// afterwards. A value of the server, on its thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/job_id.h"
#include "base/wait_marks.h"
#include "rendezvous/server/board.h"
#include "transport/auth/crypto.h"
#include "transport/socket/socket.h"

namespace trestle {

struct Gathering {
  static constexpr int64_t kMostStayNs = 60'000 * kMs;

  Gathering(int64_t deadline, int64_t now) : deadline_ns(deadline), marks(now) { random_bytes(job); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  RendezvousBoard board;
  JobId job{};
  int64_t deadline_ns;                               // when the first rank that waits gives up
  WaitMarks marks;                                   // when the ranks that wait are told whom they wait for
  int64_t patience_ns = 0;                           // the longest time to its deadline that any rank had when it came
  int64_t failed_at_ns = kNever;                     // when all of them were to hear of it
  std::vector<int32_t> answered;                     // answered or gone: these ranks do not wait any more
  std::vector<std::pair<int32_t, uint64_t>> seated;  // ranks and their processes: all that have been here
  int clients = 0;                                   // connections of its ranks
  bool has_own = false;                              // a rank of the process that holds the rendezvous is among them
  bool counted = false;                              // complete, and known to be
  bool two_jobs = false;  // failed so: its ranks may have come for another job, until a later one is complete
  bool ended = false;     // its communicator does not live any more

  // A failed gathering stays to answer late ranks; a successful one waits for reports after the ranks' deadline. Both
  // do so for the time that the ranks were ready to wait for each other, within these limits.
  int64_t stay_ns() const { return two_jobs ? kMostStayNs : std::clamp(patience_ns, 1'000 * kMs, kMostStayNs); }
  // A rank that is out of range may have been answered, too.
  bool all_told() const {
    const auto told = std::ranges::count_if(answered, [this](int32_t rank) { return rank < board.nranks(); });
    return board.nranks() > 0 && told >= board.nranks();
  }
  // Nobody is to be answered any more.
  bool over(int64_t now) const {
    if (!board.decided() || clients > 0) return false;
    if (all_told() && !two_jobs) return true;
    // No rank came at all, so there is none to tell. Otherwise a failure stays for late ranks.
    if (board.failed() && board.nranks() == 0 && patience_ns == 0) return true;
    return board.failed() && now >= failed_at_ns + stay_ns();
  }
  bool was_here(const JoinRequest& request) const {
    const uint64_t process = request.lineage.empty() ? 0 : request.lineage.front();
    return std::ranges::find(seated, std::pair(request.rank, process)) != seated.end();
  }
  void no_longer_waits(int32_t rank) {
    if (std::ranges::find(answered, rank) == answered.end()) answered.push_back(rank);
  }
};

}  // namespace trestle
