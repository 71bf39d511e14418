// The goodbye of a process that exits: of every communicator that it has not destroyed, or that it still makes.
//
// A process that ends by exit() or by returning from main tells the other ranks that it leaves, within two seconds,
// after all destructors of the program's own static objects (which may still destroy communicators). Other ranks hear
// an error only if something was under way. A process that is killed, crashes or calls _exit says nothing: it has died.
// Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "comm/watch/stop_flags.h"

namespace trestle {

class Communicator;

// It is left at exit, unless forget_at_exit() comes first.
void leave_at_exit(const std::shared_ptr<Communicator>& communicator);
// Its goodbye is said.
void forget_at_exit(const Communicator* communicator);

// Those that were made and not left yet, of this process.
std::vector<std::shared_ptr<Communicator>> living_communicators();

// While one lives, a communicator is being made: its flag is raised at exit, and the exit waits until the other ranks
// have been told.
class StopAtExit {
 public:
  explicit StopAtExit(std::atomic<bool>& stop);

 private:
  const StopFlags::Registration registration_;
};

}  // namespace trestle
