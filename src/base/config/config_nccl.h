// NCCL's variables as fallbacks: where neither the environment nor a file sets ours, what a user of NCCL has set holds,
// as far as it means something here.
//
// Pure functions, any thread. A fallback never fails anything: what has no meaning here is a warning.
#pragma once

#include <string>
#include <vector>

#include "base/launcher.h"

namespace trestle {

struct Fallback {
  const char* variable;  // ours
  const char* nccl;      // NCCL's
  std::string text;      // in the grammar of ours; "": nothing was left of it
  std::vector<std::string> warnings;
};

// One per variable of NCCL that is set and has one of ours. Grammars: NCCL 2.29's documentation, "Environment
// Variables".
//  * NCCL_SOCKET_IFNAME, NCCL_DEBUG, NCCL_DEBUG_FILE: as they are.
//  * NCCL_DEBUG_SUBSYS: without the subsystems that only NCCL has.
//  * NCCL_ALGO: clauses [function:][^]name,..., separated by ;. Ring and Tree are what is here called ring and dbtree,
//  for
//    the functions that have them in NCCL. A list of several leaves the choice between all algorithms.
std::vector<Fallback> nccl_fallbacks(const Environment& environment);

// The name of NCCL's variable that stands in for ours, or "".
std::string nccl_name_of(const char* variable);

}  // namespace trestle
