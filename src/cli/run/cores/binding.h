// Which processors each rank of a job may run on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/run/cores/core_claims.h"
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
  std::vector<Core> places;  // by rank; empty: no rank is bound
  // Why no rank is bound, or what is shared with others; "" if all is as requested.
  std::string note;
  bool asked = false;  // the note concerns something that was requested
};

// Consecutive ranks get neighbouring cores. Cores that another job has claimed come last. The cores taken here are
// recorded in `claims`.
Binding bind_ranks(Bind bind, size_t ranks, const std::vector<Core>& cores, CoreClaims& claims);

}  // namespace trestle
