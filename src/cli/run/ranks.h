// Ranks: the processes of a job, each with its process group, its output and how it has ended.
//
// Owned by the job, its only thread. This process adopts what ranks leave behind (PR_SET_CHILD_SUBREAPER). So a process
// group without its leader keeps its number until this process has waited for the last process in it.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "cli/run/rank_end.h"
#include "cli/run/rank_stream.h"

namespace trestle {

struct Rank {
  RankName name;
  std::vector<RankStream> streams;
  std::optional<RankEnd> end;
  bool told = false;  // its process group has got a signal that ends it
  bool running() const { return !end.has_value(); }
};

class Ranks {
 public:
  explicit Ranks(int guard) : guard_(guard) {}
  void add(Rank rank) { ranks_.push_back(std::move(rank)); }
  std::deque<Rank>& all() { return ranks_; }
  bool any_running() const;
  // The ranks that have ended since the last call; their output was passed on. What a failed rank leaves behind is
  // killed with it, unless the rank was told to end and its processes still have time. Ranks that a signal has killed
  // come first: the others may have ended because of them. A process closes its connections before its end can be seen.
  // So failed ranks are kept back, at most a second, until no other rank is about to end.
  std::vector<Rank*> reap();
  // When to call reap() at the latest.
  int64_t next_ns() const { return seen_.empty() ? kNever : seen_ns_ + kMostKeptNs; }
  // The running ranks, and those that were told to end and have left processes behind.
  std::vector<RankName> present() const;
  void signal(int number);  // to the process groups of present()
  void tell(int number);    // signal() with one that ends them; also reaches stopped processes

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kMostKeptNs = 1'000'000'000;
  bool left_behind(const Rank& rank) const;
  void ended(Rank& rank, const RankEnd& end) const;
  bool others_to_come() const;

  const int guard_;
  std::deque<Rank> ranks_;
  std::vector<Rank*> seen_;  // ended, not returned yet
  int64_t seen_ns_ = 0;      // when the first of them was seen
};

}  // namespace trestle
