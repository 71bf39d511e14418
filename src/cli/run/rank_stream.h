// RankStream: one output stream of a rank, from the pipe that the rank writes into to the outlet that its lines go to.
//
// Owned by the rank, the job's thread only.
#pragma once

#include "base/unique_fd.h"
#include "cli/run/line_prefix.h"

namespace trestle {

class RankStream {
 public:
  // `from` does not block.
  RankStream(UniqueFd from, LinePrefix lines) : from_(std::move(from)), lines_(std::move(lines)) {}
  int fd() const { return from_.get(); }  // -1: at its end
  // Whether the outlet has room for more.
  bool wanted() const { return from_ && !lines_.outlet().full(); }
  // Passes on what is there; false at the end of the stream or when there is nothing.
  bool pass_on();
  // Everything that is there, up to what a pipe holds; afterwards nothing more where `last`.
  void drain(bool last);

 private:
  UniqueFd from_;
  LinePrefix lines_;
};

}  // namespace trestle
