// Outlet: one destination of lines: a terminal, a pipe, a file. Lines that it does not take now are kept until it does.
//
// A write never waits for a reader. Terminals and pipes are opened once more for that: whether a write waits is a
// property of the open file, which is shared with other processes, and a shell's terminal must stay as it is. Only a
// terminal or pipe that this process may not open (another user's, handed on by su) is written to as it is, and may
// hold this process up.
//
// Owned by the job, its only thread. If standard output and standard error are the same file, they share one outlet, so
// that their lines never mix. A line of up to 4 KiB is one write(2).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace trestle {

class Outlet {
 public:
  explicit Outlet(int fd);  // the caller keeps it
  explicit Outlet(UniqueFd fd);

  // Adds whole lines. They are dropped if an earlier write has failed.
  void add(std::string_view lines);
  // Writes what the destination takes now. True if that was anything.
  bool write_some();
  void drop();  // drops what is pending
  bool pending() const { return written_ < queue_.size(); }
  // Too much is kept: the caller should read no more for this destination.
  bool full() const;
  int fd() const { return fd_; }
  // errno of the write that failed, 0 if none has. A reader that has gone away (EPIPE) is no failure.
  int failure() const { return failure_; }
  bool same_place(const Outlet& other) const;

 private:
  size_t next_piece() const;
  ssize_t write_piece() const;
  void give_up(int number);

  UniqueFd owned_;
  const int fd_;
  UniqueFd unblocking_;  // the terminal or pipe of fd_, opened once more; empty: fd_ is used
  bool socket_ = false;
  std::string queue_;
  size_t written_ = 0;  // of the queue
  bool dropping_ = false;
  int failure_ = 0;
};

}  // namespace trestle
