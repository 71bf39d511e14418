// JobSignals: the signals of `trestle run`, as a descriptor that the job's loop polls.
//
// open() blocks them for good, in this process's one thread, and ignores SIGPIPE. Where SIGHUP is ignored (nohup) it
// stays so and is not heard; the others are heard even where they were ignored.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class JobSignals {
 public:
  static Result<JobSignals> open();
  int fd() const { return fd_.get(); }
  // Those that have come, SIGCHLD excepted. The end of a job that is asked for twice at once by one process is one
  // signal: timeout(1) sends it to its child and to its process group.
  std::vector<int> take();

 private:
  explicit JobSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  bool repeats(int number, pid_t sender);

  UniqueFd fd_;
  int last_ = 0;
  pid_t last_sender_ = 0;
  int64_t last_ns_ = 0;
};

// What ends a job.
bool ends_job(int number);

}  // namespace trestle
