// RankInput: the standard input of rank 0, which is that of this process.
//
// A file or a pipe is handed to the rank as it is. A terminal is read here and passed on: the rank's process group is
// never the terminal's foreground one, so that the rank would be stopped when it reads. Owned by the job, its thread.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class RankInput {
 public:
  static Result<RankInput> open();
  // What rank 0 gets as its standard input. Valid until started().
  int for_rank() const { return pipe_ ? pipe_.get() : 0; }
  // Rank 0 holds its end now.
  void started() { pipe_.reset(); }
  // What to wait for; nothing where there is nothing to pass on.
  void add_to(std::vector<pollfd>& fds) const;
  void pass_on();
  void resumed() { in_background_ = false; }  // after SIGCONT: perhaps in the foreground
  void end();                                 // rank 0 has ended

 private:
  RankInput() = default;
  void read_terminal();

  UniqueFd pipe_;  // the rank's end
  UniqueFd to_;    // this process's end, where there is a terminal
  std::string kept_;
  bool at_end_ = false;         // of the terminal's input
  bool in_background_ = false;  // the terminal's input is for others
};

}  // namespace trestle
