// Says goodbye for a process that exits: for every communicator that it has not destroyed, or is still creating.
//
// A process that ends by exit() or by returning from main tells the other ranks that it leaves, within two seconds. It
// does so after all destructors of the program's own static objects, which may still destroy communicators. Other ranks
// get an error only if something was under way. A process that is killed, crashes or calls _exit says nothing: to the
// others it has died. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "comm/watch/stop_flags.h"

namespace trestle {

class Communicator;
struct OtherCommRank;

// The exit says goodbye for the communicator, unless forget_at_exit() comes first.
void leave_at_exit(const std::shared_ptr<Communicator>& communicator);
// The goodbye was said.
void forget_at_exit(const Communicator* communicator);

// The communicators of this process that were created and not left yet.
std::vector<std::shared_ptr<Communicator>> living_communicators();
// The one that is that rank; nullptr: there is none.
std::shared_ptr<Communicator> living_communicator(const OtherCommRank& place);

// While one exists, a communicator is being created. At exit its flag is set, and the exit waits until the other ranks
// have been told.
class StopAtExit {
 public:
  explicit StopAtExit(std::atomic<bool>& stop);

 private:
  const StopFlags::Registration registration_;
};

}  // namespace trestle
