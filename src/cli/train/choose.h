// `trestle train choose`: which collective sends a compressed gradient in the least time, by the rules 5a to 5c of FLEX
// (compress/choice.h), with the costs of all. Pure, any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle {

// As on the command line; "" if not given.
struct ChooseOptions {
  std::string bytes;    // of the whole gradient: 25M
  std::string ratio;    // the part that is sent, above 0 and at most 1
  std::string workers;  // at least 2
  std::string alpha;    // seconds per message
  std::string beta;     // seconds per byte
  bool json = false;
};

// The text for standard output. JSON: one object of bytes, ratio, workers, alpha_s, beta_s, costs (list of collective
// and time_s, the fastest first), rules (ring_beats_tree, ring_beats_all_gather, tree_beats_all_gather), chosen and
// dense_ring_s, the time of a ring all-reduce of the whole gradient.
// Errors (kInvalidArgument) are one sentence that begins with the option.
Result<std::string> choose_collective(const ChooseOptions& options);

}  // namespace trestle
