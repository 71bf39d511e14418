// LinkMeeting: before a collective call of schedulers, all ranks find out whether they have given their schedulers the
// same communicators in the same order. Only after that does the call put anything on a communicator.
//
// Each rank leaves a notice with its list of communicators for rank 0, on every link that it has. It cannot choose one
// link, because no communicator is known to be in the lists of all ranks. Rank 0 waits until it has a notice of every
// rank on some link of its own, and leaves its verdict on that link. Notices are not queued (LinkAccess), so nothing
// stays behind on a link that another rank does not have.
//
// A pure state machine; one thread. Notices may be late, and those of earlier meetings may still lie there. So each
// meeting of a rank has a number of its own, and rank 0 remembers which numbers it has judged. Texts of other ranks are
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

// The numbers of the meetings that ranks 0 of this process have judged last. Any thread.
class JudgedMeetings {
 public:
  bool contains(uint64_t number) const;
  void add(uint64_t number);
  static JudgedMeetings& process();

 private:
  // A rank takes its notices back when it has read the verdict. By then far fewer other meetings are judged.
  static constexpr size_t kMost = 1 << 16;
  mutable Mutex mutex_;
  std::unordered_set<uint64_t> numbers_ TRESTLE_GUARDED_BY(mutex_);
  std::deque<uint64_t> by_age_ TRESTLE_GUARDED_BY(mutex_);
};

class LinkMeeting {
 public:
  using Leave = std::function<void(size_t link, int to, const std::string& text)>;
  using Latest = std::function<std::string(size_t link, int from)>;

  // number: of this meeting on this rank; no other meeting has it.
  LinkMeeting(LinkAccess::Place place, uint64_t number, JudgedMeetings& judged);

  // Leaves the notices with this rank's list.
  void come(const Leave& leave) const;
  // Looks at the notices. True if the meeting is over. Then result() is success, or kInvalidUsage with what rank 0 and
  // the first rank that differs have given, the same on all ranks.
  bool look(const Latest& latest, const Leave& leave);
  const Status& result() const { return result_; }
  // A rank that this one waits for.
  int awaited() const { return place_.rank == 0 ? static_cast<int>(guests_.size()) + 1 : 0; }
  // Takes this rank's notices back: after the result, or if there will be none.
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
