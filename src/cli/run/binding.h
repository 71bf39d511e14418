// Which processors each rank of a job may run on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "machine/cores.h"

namespace trestle {

enum class Bind {
  kAuto,    // one core each, if there are enough that no other job has claimed
  kNone,    // wherever this process may run
  kCore,    // one core each
  kSocket,  // the usable cores of a socket
};

Result<Bind> parse_bind(const std::string& text);

struct Binding {
  std::vector<Core> places;      // by rank; empty: no rank is bound
  std::string note;              // why no rank is bound, or how many share; "" if all is as requested
  std::vector<UniqueFd> claims;  // while they are open, other jobs leave the ranks' cores alone
};

// Consecutive ranks get neighbouring cores. Cores that another job has claimed come last. `claim`: how the names of
// claims begin, on this machine.
Binding bind_ranks(Bind bind, size_t ranks, const std::vector<Core>& cores, const std::string& claim = "trestle-core-");

}  // namespace trestle
