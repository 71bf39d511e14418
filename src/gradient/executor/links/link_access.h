// LinkAccess: what a scheduler needs of its communicators beyond the public functions. These are their identities,
// notices to other ranks that use no stream, and reports of failures while nothing is under way. The C layer implements
// it.
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

  // Calls the function with the first failure of each link: at once if the link has failed, else when it fails, until
  // this object ends. The call may come on any thread, perhaps twice for a link. The function must not block, throw or
  // call the library. Call on_failure() once.
  virtual void on_failure(std::function<void(const Error&)> function) = 0;
  // Fails the communicators of all links, because this rank cannot do its part while other ranks wait for it. Does
  // nothing if one has failed: then all ranks know.
  virtual void fail(const Error& error) = 0;
  // fail() because this rank has no memory. It needs none itself.
  virtual void fail_without_memory() = 0;
  // Fails the communicator of one link, because no rank will do its part on it any more. Does nothing if it has failed.
  virtual void fail_link(size_t link, const Error& error) = 0;

  // ---- for link_meeting.h
  struct Place {
    int rank = 0;
    int ranks = 1;
    // By link: the communicator's identity. All its ranks have the same, and no other communicator has it. No spaces.
    std::vector<std::string> links;
  };
  virtual Place place() const = 0;
  // A number that no other call returns, on any rank.
  virtual uint64_t unique_number() = 0;
  // Leaves a notice for rank `to` on that link. It replaces the one before.
  virtual void leave_notice(size_t link, int to, const std::string& text) = 0;
  // The latest notice that rank `from` has left for this rank on that link; "": none yet.
  virtual std::string latest_notice(size_t link, int from) const = 0;
  // Waits until done() returns true, and asks again whenever a notice may have come. awaited() names a rank that it
  // waits for. Errors: the failure of a link. At the deadline, and when the awaited rank has left, this call fails the
  // first link.
  virtual Status wait(const char* function, const std::function<bool()>& done, const std::function<int()>& awaited) = 0;
};

}  // namespace trestle
