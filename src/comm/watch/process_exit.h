// Says goodbye for a process that exits: for every communicator that it has not destroyed, or is still creating.
//
// A process that ends by exit() or by returning from main tells the other ranks that it leaves, within two seconds. It
// does so after all destructors of the program's own static objects, which may still destroy communicators. Other ranks
// get an error only if something was under way. A process that is killed, crashes or calls _exit says nothing: to the
// others it has died. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/watch/stop_flags.h"

namespace trestle {

class CallWatch;
class Engine;
class Membership;
struct OtherCommRank;

// How long an orderly end waits until its goodbye has left this machine.
inline constexpr int kGoodbyeMs = 1000;

// What the exit of the process, and the watches of other communicators, ask of a communicator.
class LivingCommunicator {
 public:
  virtual ~LivingCommunicator() = default;
  virtual const Membership& membership() const = 0;
  virtual Engine& engine() = 0;
  virtual CallWatch& watch() = 0;
  // The process exits, and nothing has destroyed this communicator. report_exit() tells the other ranks what was under
  // way, if anything was, and ends it. exit() says goodbye, at most until `deadline_ns` of the monotonic clock. A
  // Destroy that follows, or runs on another thread, does nothing more.
  virtual void report_exit(int64_t deadline_ns) = 0;
  virtual void exit(int64_t deadline_ns) = 0;
};

// The exit says goodbye for the communicator, unless forget_at_exit() comes first.
void leave_at_exit(const std::shared_ptr<LivingCommunicator>& communicator);
// The goodbye was said.
void forget_at_exit(const LivingCommunicator* communicator);

// The communicators of this process that were created and not left yet.
std::vector<std::shared_ptr<LivingCommunicator>> living_communicators();
// The one that is that rank; nullptr: there is none.
std::shared_ptr<LivingCommunicator> living_communicator(const OtherCommRank& place);

// While one exists, a communicator is being created. At exit its flag is set, and the exit waits until the other ranks
// have been told.
class StopAtExit {
 public:
  explicit StopAtExit(std::atomic<bool>& stop);

 private:
  const StopFlags::Registration registration_;
};

}  // namespace trestle
