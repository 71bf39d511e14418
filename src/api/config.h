// The config struct of the C API. Any thread. Used by src/api only.
#pragma once

#include "base/result.h"
#include "comm/setup/settings.h"
#include "trestle/trestle.h"

namespace trestle {

// Reads the caller's config struct.
Result<SettingsOverride> read_config(const trestleConfig_t* config);

}  // namespace trestle
