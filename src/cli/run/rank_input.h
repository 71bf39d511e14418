// RankInput: the standard input of rank 0, which is that of this process.
//
// A file or a pipe is handed to the rank as it is. A terminal is read here and passed on: the rank's process group is
// never the terminal's foreground one, so a rank that reads it would be stopped. Owned by the job, its only thread.
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
  // The descriptor for rank 0's standard input. Valid until started().
  int for_rank() const { return pipe_ ? pipe_.get() : 0; }
  // Rank 0 holds its end now.
  void started() { pipe_.reset(); }
  // Adds the descriptors to wait for; none if there is nothing to pass on.
  void add_to(std::vector<pollfd>& fds) const;
  void pass_on();
  void resumed() { in_background_ = false; }  // after SIGCONT: perhaps in the foreground
  void end();                                 // rank 0 has ended

 private:
  RankInput() = default;
  void read_terminal();

  UniqueFd pipe_;  // the rank's end
  UniqueFd to_;    // this process's end, if the input is a terminal
  std::string kept_;
  bool at_end_ = false;         // of the terminal's input
  bool in_background_ = false;  // another process group has the terminal
};

}  // namespace trestle
