// LinkMeeting: all ranks meet before a collective call of their schedulers, and find out whether they have given them
// the same communicators in the same order. Only behind that does the call put anything on a communicator.
//
// Each rank leaves a notice with its list for rank 0, on every link that it has: no communicator is known to be in the
// lists of all ranks. Rank 0 waits until every rank has come on some link of its own, and leaves its verdict there.
// Notices are not queued (LinkAccess), so nothing stays behind on a link that another rank does not have.
//
// A pure state machine; one thread. Notices may be late, and those of earlier meetings may still lie there. So each
// meeting of a rank has a number of its own, and rank 0 remembers which ones it has judged. Texts of other ranks are
// not trusted: malformed ones are ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "gradient/executor/links/link_access.h"

namespace trestle {

// The meetings that were judged last in this process. Any thread.
class JudgedMeetings {
 public:
  bool contains(uint64_t number) const;
  void add(uint64_t number);
  static JudgedMeetings& process();

 private:
  // Ranks take their notices back when they have read the verdict, long before so many others are judged.
  static constexpr size_t kMost = 1 << 16;
  mutable Mutex mutex_;
  std::unordered_set<uint64_t> numbers_ TRESTLE_GUARDED_BY(mutex_);
  std::deque<uint64_t> by_age_ TRESTLE_GUARDED_BY(mutex_);
};

class LinkMeeting {
 public:
  using Leave = std::function<void(size_t link, int to, const std::string& text)>;
  using Latest = std::function<std::string(size_t link, int from)>;

  // number: of this meeting, on this rank alone.
  LinkMeeting(LinkAccess::Place place, uint64_t number, JudgedMeetings& judged);

  // Says that this rank has come.
  void come(const Leave& leave) const;
  // Looks at the notices. True if the meeting is over. Then result() is success, or kInvalidUsage with what rank 0 and
  // the first rank that differs have given, the same on all ranks.
  bool look(const Latest& latest, const Leave& leave);
  const Status& result() const { return result_; }
  // A rank that this one waits for.
  int awaited() const { return place_.rank == 0 ? static_cast<int>(guests_.size()) + 1 : 0; }
  // Behind the result, or instead of it: takes this rank's notices back.
  void go(const Leave& leave) const;

 private:
  struct Guest {
    uint64_t number = 0;
    size_t link = 0;
    std::vector<std::string> links;
  };
  bool look_for_verdict(const Latest& latest);
  std::optional<Guest> guest(int rank, const Latest& latest) const;
  Status verdict() const;

  const LinkAccess::Place place_;
  const uint64_t number_;
  JudgedMeetings& judged_;
  std::vector<Guest> guests_;  // of rank 0: ranks 1, 2, ... that have come
  Status result_;
};

// Meets the other ranks. Errors: the meeting's, LinkAccess::wait's.
Status meet_on_links(LinkAccess& links, const char* function);

}  // namespace trestle
