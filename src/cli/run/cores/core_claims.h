// CoreClaims: the cores that the jobs of this machine have claimed, so that two jobs do not bind their ranks to the
// same ones.
//
// A claim is the name of an abstract Unix socket. Any process of the network namespace sees it, and it ends with the
// process that holds it. Owned by the job, its only thread.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace trestle {

class CoreClaims {
 public:
  // Names begin with `prefix`.
  explicit CoreClaims(std::string prefix = "trestle-core-") : prefix_(std::move(prefix)) {}
  // True if no other job has claimed the core of this processor; then this job has. Also true if that cannot be
  // determined.
  bool claim(int processor);
  void release_all() { held_.clear(); }

 private:
  const std::string prefix_;
  std::vector<UniqueFd> held_;
};

}  // namespace trestle
