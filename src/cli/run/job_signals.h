// JobSignals: the signals of `trestle run`, as a descriptor that the job's loop polls.
//
// open() blocks them for good, in this process's only thread, and ignores SIGPIPE. If SIGHUP is ignored (nohup) it
// stays ignored. The others are received even if they were ignored.
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
  // The signals that have arrived, except SIGCHLD. If one process asks twice at once for the end of the job, that is
  // one signal: timeout(1) sends it to its child and to its process group.
  std::vector<int> take();

 private:
  explicit JobSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  bool repeats(int number, pid_t sender);

  UniqueFd fd_;
  int last_ = 0;
  pid_t last_sender_ = 0;
  int64_t last_ns_ = 0;
};

// Whether the signal ends a job.
bool ends_job(int number);

}  // namespace trestle
