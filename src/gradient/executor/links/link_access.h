// LinkAccess: what a scheduler needs of its communicators beyond the public functions: their identities, notices to
// other ranks beside all streams, and to hear of a failure while nothing is under way. The C layer implements it.
//
// Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

class LinkAccess {
 public:
  virtual ~LinkAccess() = default;

  // The first failure of each link, when it happens or now, until the object ends. The function is called on any
  // thread, perhaps twice for a link; it must not block, throw or call the library. Once.
  virtual void on_failure(std::function<void(const Error&)> function) = 0;
  // Fails the communicators of all links, because this rank cannot do its part of what other ranks wait for. Nothing if
  // one has failed: then all ranks know. Does not throw.
  virtual void fail(const Error& error) = 0;
  // Fails that one, because no rank will do its part on it any more. Nothing if it has failed. Does not throw.
  virtual void fail_link(size_t link, const Error& error) = 0;

  // ---- for link_meeting.h
  struct Place {
    int rank = 0;
    int ranks = 1;
    // By link: the same on all ranks of a communicator, and of no other one. No spaces.
    std::vector<std::string> links;
  };
  virtual Place place() const = 0;
  // A number that no other call has got, on any rank.
  virtual uint64_t unique_number() = 0;
  // Replaces what this rank has left for the other one on that link.
  virtual void leave_notice(size_t link, int to, const std::string& text) = 0;
  // What that rank has left for this one there; "": nothing yet.
  virtual std::string latest_notice(size_t link, int from) const = 0;
  // Waits until done(), asking again whenever a notice may have come. Errors: that of a link that has failed; at the
  // deadline and when the awaited rank has left, this fails the first link.
  virtual Status wait(const char* function, const std::function<bool()>& done, const std::function<int()>& awaited) = 0;
};

}  // namespace trestle
