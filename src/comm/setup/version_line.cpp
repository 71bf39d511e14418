#include "comm/setup/version_line.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include "base/fork.h"
#include "base/log.h"
#include "kernels/reduce.h"
#include "transport/catalog.h"
#include "trestle/trestle.h"

namespace trestle {

std::string version_number() {
  return std::to_string(TRESTLE_MAJOR) + "." + std::to_string(TRESTLE_MINOR) + "." + std::to_string(TRESTLE_PATCH);
}

std::string version_text() {
  std::string text = "Trestle " + version_number() + "; compiler " + __VERSION__;
  std::string without;
  const char* separator = "; transports ";
  for (const TransportRow& row : transports()) {
    const Status usable = row.probe();
    if (!usable.ok()) {
      without += "; no " + std::string(row.name) + " (" + usable.error().message + ")";
      continue;
    }
    text += separator + std::string(row.name);
    separator = ", ";
  }
  return text + without + "; kernels " + reduce_instruction_set();
}

// As in NCCL: any level that the user has set logs the line, also WARN; WARN as the default does not.
void log_version(const Config& config) {
  if (!log_enabled(LogLevel::kVersion, Subsystem::kInit)) return;
  const auto level = std::ranges::find(config.values, std::string_view("TRESTLE_DEBUG"), &Config::Value::name);
  if (level == config.values.end() || level->source == ConfigSource::kDefault) return;
  static constinit PerProcess<std::atomic<bool>> said;
  if (!said.get().exchange(true)) LOG(kVersion, kInit, "%s", version_text().c_str());
}

}  // namespace trestle
