// Child: one rank that `trestle run` started: its process, its two output streams, how it ended.
//
// Owned by run_ranks, its only thread. The process leads a process group of its own, has no standard input, and is
// killed by the kernel when this process ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/launcher.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/line_prefix.h"

namespace trestle {

class Child {
 public:
  // `environment` is all that it gets. A program that cannot be executed ends with 126 or 127, as in a shell.
  static Result<Child> start(const std::vector<std::string>& command, const Environment& environment, int rank);

  pid_t pid() const { return pid_; }
  bool running() const { return !code_.has_value(); }
  int code() const { return code_.value_or(0); }  // its exit code, or 128 + signal
  void ended(int wait_status);
  void signal(int number) const;  // to its whole group

  static constexpr int kStreams = 2;
  int fd(int stream) const { return streams_[static_cast<size_t>(stream)].from.get(); }  // -1: at its end
  // Passes on what is there; false at the end of the stream or when there is nothing.
  bool pass_on(int stream);
  void end_streams();

 private:
  struct Stream {
    UniqueFd from;
    LinePrefix to;
  };
  pid_t pid_ = -1;
  std::optional<int> code_;
  std::vector<Stream> streams_;
};

}  // namespace trestle
