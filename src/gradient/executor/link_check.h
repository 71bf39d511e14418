// LinkCheck: whether all ranks have given their schedulers the same communicators, in the same order.
//
// Collective, before anything else is on the communicators; used by the executor's thread. It asks on all of them at
// once, so that ranks with another order do not wait for each other.
#pragma once

#include <memory>
#include <vector>

#include "gradient/executor/core_calls.h"

namespace trestle {

class LinkCheck {
 public:
  // Asks. Error: the communicators'.
  static Result<std::unique_ptr<LinkCheck>> start(const std::vector<trestleComm_t>& comms);
  // Waits for the answers, up to the first one that is wrong. Error: kInvalidUsage, with the rank and both numbers.
  // Other answers may still come, so the object stays until the communicators end or are complete.
  Status finish();

 private:
  struct Link {
    trestleComm_t comm = nullptr;
    int ranks = 1;
    std::vector<uint64_t> mine, all;  // the link's number and the number of links, of each rank
    CoreStream stream;
  };
  std::vector<Link> links_;
};

}  // namespace trestle
