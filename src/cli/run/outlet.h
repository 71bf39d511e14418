// Outlet: one place that lines are written to: a terminal, a pipe, a file. What the place does not take now is kept
// until it does.
//
// A write never waits for a reader. Terminals and pipes are opened once more for that, because whether a write waits is
// a property that all who share an open file have in common: a shell's terminal must stay as it is. Only a terminal or
// pipe that this process may not open (another user's, handed on by su) is written to as it is, and may hold it up.
//
// Owned by the job, its only thread. Standard output and standard error that are the same file share one outlet, so
// that their lines never mix. A line of up to 4 KiB is one write(2).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace trestle {

class Outlet {
 public:
  explicit Outlet(int fd);  // stays the caller's
  explicit Outlet(UniqueFd fd);

  // Whole lines. Dropped where an earlier write has failed.
  void add(std::string_view lines);
  // Writes what the place takes now; whether that was anything.
  bool write_some();
  void drop();  // what is pending
  bool pending() const { return written_ < queue_.size(); }
  // Too much is kept: nothing more should be read for this place.
  bool full() const;
  int fd() const { return fd_; }
  // errno of the write that failed, 0 while none has. A reader that has gone away (EPIPE) is no failure.
  int failure() const { return failure_; }
  bool same_place(const Outlet& other) const;

 private:
  size_t next_piece() const;
  ssize_t write_piece() const;
  void give_up(int number);

  UniqueFd owned_;
  const int fd_;
  UniqueFd unblocking_;  // the same terminal or pipe, opened once more; none: fd_ is written to
  bool socket_ = false;
  std::string queue_;
  size_t written_ = 0;  // of the queue
  bool dropping_ = false;
  int failure_ = 0;
};

}  // namespace trestle
