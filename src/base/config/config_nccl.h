// NCCL's variables as fallbacks: if neither the environment nor a file sets one of our variables, NCCL's is used, as
// far as it has a meaning here.
//
// Pure functions, any thread. A fallback never causes an error: a value without a meaning here is a warning.
#pragma once

#include <string>
#include <vector>

#include "base/config/launcher.h"

namespace trestle {

struct Fallback {
  const char* variable;  // ours
  const char* nccl;      // NCCL's
  std::string text;      // in the syntax of ours; "": nothing of it applies
  std::vector<std::string> warnings;
};

// One entry per NCCL variable that is set and has one of ours. Syntax: NCCL 2.29's documentation, "Environment
// Variables".
//  * NCCL_SOCKET_IFNAME, NCCL_DEBUG, NCCL_DEBUG_FILE: unchanged.
//  * NCCL_DEBUG_SUBSYS: without the subsystems that only NCCL has.
//  * NCCL_P2P_DISABLE: 1 is 0, and 0 is 1.
//  * NCCL_ALGO: clauses [function:][^]name,..., separated by ;. Ring and Tree are our ring and dbtree, for the
//    functions that have them in NCCL. A list of several allows all algorithms.
std::vector<Fallback> nccl_fallbacks(const Environment& environment);

// The NCCL variable that stands in for ours, or "".
std::string nccl_name_of(const char* variable);

}  // namespace trestle
