// The C API: lines of others in the log.
#include "trestle/log.h"

#include "api/errors.h"
#include "base/config/config.h"
#include "base/log.h"

using namespace trestle;

extern "C" {

trestleResult_t trestleLog(trestleLogLevel_t level, const char* text) {
  return guarded([&]() -> Status {
    if (text == nullptr) return invalid_argument("Log: text is NULL");
    if (level != trestleLogWarn && level != trestleLogInfo) {
      return invalid_argument("Log: level is " + std::to_string(level) + ": trestleLogWarn or trestleLogInfo");
    }
    const Result<Config>& config = process_config_result();  // sets the log up
    if (!config.ok()) return config.error();
    if (level == trestleLogWarn) LOG(kWarn, kInit, "%s", text);
    if (level == trestleLogInfo) LOG(kInfo, kInit, "%s", text);
    return {};
  });
}

}  // extern "C"
