// Guard: a process that kills the ranks' process groups after this process was killed.
//
// The kernel kills the ranks themselves (PR_SET_PDEATHSIG), but not the processes that they have started, and a rank
// may be a script whose child does the work. The guard has a session of its own and holds no descriptor of the job
// open. The end of a pipe tells it that this process has ended. Owned by the job, its only thread.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class Guard {
 public:
  static Result<Guard> start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  ~Guard();  // an orderly end: the guard kills nothing

  int fd() const { return to_.get(); }
  pid_t pid() const { return pid_; }
  // From now on the guard kills `group` with this process; a negative number takes that back. Async-signal-safe.
  static bool tell(int fd, pid_t group);

 private:
  Guard(pid_t pid, UniqueFd to) : pid_(pid), to_(std::move(to)) {}
  pid_t pid_;
  UniqueFd to_;
};

}  // namespace trestle
