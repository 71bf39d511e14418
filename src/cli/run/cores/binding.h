// Which processors each rank of a job may run on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/run/cores/core_claims.h"
#include "cli/run/cores/cores.h"

namespace trestle {

enum class Bind {
  kAuto,    // to a core each, where there are enough that no other job has taken
  kNone,    // wherever this process may run
  kCore,    // to a core each
  kSocket,  // to the usable cores of a socket
};

Result<Bind> parse_bind(const std::string& text);

struct Binding {
  std::vector<Core> places;  // by rank; empty: no rank is bound
  std::string note;          // why not, or what is shared with others; "" where all is as asked for
  bool asked = false;        // the note is about something that was asked for
};

// Consecutive ranks get neighbours. Cores that another job has taken come last; what is taken here is in `claims`.
Binding bind_ranks(Bind bind, size_t ranks, const std::vector<Core>& cores, CoreClaims& claims);

}  // namespace trestle
