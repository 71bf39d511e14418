// `trestle env`: the variables with their values. Pure, any thread.
#pragma once

#include <string>

#include "base/config/config.h"

namespace trestle {

struct EnvOptions {
  std::string word;      // shows only variables that have it in their name, value or meaning; "": all
  bool changed = false;  // shows only values that are not the default
  bool json = false;
};

// JSON: a list of name, value, default, source, agreed, meaning, values. Errors (kInvalidArgument): a word that nothing
// has; a name in TRESTLE_ALGO, TRESTLE_SCHED or TRESTLE_INTRA that does not exist.
Result<std::string> env_text(const Config& config, const EnvOptions& options);

}  // namespace trestle
