// BootstrapHandover: how the ranks of a new communicator that all live in one process get their bootstraps. The first
// of them makes those of all, by rank; the others take theirs here.
//
// Owned by the rank that made them; the other ranks find it by its job. Any thread. A forked child finds none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/job_id.h"
#include "rendezvous/bootstrap.h"

namespace trestle {

class BootstrapHandover {
 public:
  BootstrapHandover(const JobId& job, std::vector<std::unique_ptr<Bootstrap>> by_rank);
  ~BootstrapHandover();  // bootstraps that nobody took end
  BootstrapHandover(const BootstrapHandover&) = delete;
  BootstrapHandover& operator=(const BootstrapHandover&) = delete;

  // nullptr: there is no handover for that job, or no longer.
  static std::unique_ptr<Bootstrap> take(const JobId& job, int32_t rank);

 private:
  const JobId job_;
};

}  // namespace trestle
