// CoreClaims: which cores the jobs of this machine have taken for themselves, so that two jobs do not bind their ranks
// to the same ones.
//
// A claim is the name of an abstract Unix socket: any process of the network namespace sees it, and it ends with the
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
  // Whether no other job has the core of this processor; then it is this one's. Where that cannot be found out: yes.
  bool claim(int processor);
  void release_all() { held_.clear(); }

 private:
  const std::string prefix_;
  std::vector<UniqueFd> held_;
};

}  // namespace trestle
