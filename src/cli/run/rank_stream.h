// RankStream: one output stream of a rank: takes lines from the pipe that the rank writes to, and passes them to an
// outlet.
//
// Owned by the rank, used on the job's thread only.
#pragma once

#include "base/unique_fd.h"
#include "cli/run/line_prefix.h"

namespace trestle {

class RankStream {
 public:
  // `from` must be nonblocking.
  RankStream(UniqueFd from, LinePrefix lines) : from_(std::move(from)), lines_(std::move(lines)) {}
  int fd() const { return from_.get(); }  // -1: the stream has ended
  // Whether the outlet has room for more.
  bool wanted() const { return from_ && !lines_.outlet().full(); }
  // Passes on what has arrived; false if there is nothing, or at the end of the stream.
  bool pass_on();
  // Passes on everything that has arrived, up to what a pipe holds. With `last` the stream ends then.
  void drain(bool last);

 private:
  UniqueFd from_;
  LinePrefix lines_;
};

}  // namespace trestle
