#include "base/config.h"

#include <unistd.h>

#include <limits>

#include "base/check.h"
#include "base/config_table.h"
#include "base/hash.h"

namespace trestle {
namespace {

constexpr std::string_view kPrefix = "TRESTLE_";

// A sentence for a TRESTLE_ name that no row has, with the closest one that exists if it is close enough to be a slip.
std::string unknown_name_warning(const std::string& name) {
  const char* nearest = "";
  size_t least = std::numeric_limits<size_t>::max();
  for (const Variable& row : kVariables) {
    const size_t distance = edit_distance(name, row.name);
    if (distance < least) {
      least = distance;
      nearest = row.name;
    }
  }
  std::string warning("environment variable ");
  warning.append(name).append(" does not exist and is ignored");
  if (least <= 4) warning.append("; did you mean ").append(nearest).append("?");
  return warning;
}

bool is_known(std::string_view name) {
  for (const Variable& row : kVariables) {
    if (name == row.name) return true;
  }
  return false;
}

// XDG Base Directory Specification 0.8: a relative path is invalid and ignored.
std::string cache_folder(const Environment& environment) {
  const auto folder = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second.starts_with('/') ? found->second : std::string();
  };
  const std::string cache = folder("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/trestle";
  const std::string home = folder("HOME");
  return home.empty() ? "" : home + "/.cache/trestle";
}

Config defaults() {
  Result<Config> config = parse_config({});
  CHECK(config.ok(), "a default in the table of environment variables cannot be parsed");
  return std::move(config).value();
}

Result<Config> read_process_config() {
  Result<Config> config = parse_config(process_environment());
  LogSettings settings;
  if (config.ok()) settings = {config.value().debug_level, config.value().debug_subsystems, config.value().debug_file};
  const Status log_status = configure_log(settings);
  if (!log_status.ok()) return log_status.error();
  if (config.ok()) {
    for (const std::string& warning : config.value().warnings) LOG(kWarn, kEnv, "%s", warning.c_str());
    for (const Config::Value& value : config.value().values) {
      if (value.from_environment) LOG(kInfo, kEnv, "%s set by environment to %s", value.name, value.text.c_str());
    }
  }
  return config;
}

}  // namespace

Result<Config> parse_config(const Environment& environment) {
  Config config;
  for (const Variable& row : kVariables) {
    const auto found = environment.find(row.name);
    const bool set = found != environment.end() && !found->second.empty();
    const std::string text = set ? found->second : row.fallback;
    TRY(set_config_value(config, row, text));
    const bool hidden = row.kind == VariableKind::kSecret && set;
    config.values.push_back({row.name, hidden ? "(set)" : canonical_text(row, text), set, row.scope == Scope::kAgreed});
  }
  for (const auto& [name, value] : environment) {
    if (name.starts_with(kPrefix) && !is_known(name)) config.warnings.push_back(unknown_name_warning(name));
  }
  config.launcher = read_launcher(environment);
  if (config.calibration_folder.empty()) config.calibration_folder = cache_folder(environment);
  return config;
}

Environment process_environment() {
  Environment environment;
  if (environ == nullptr) return environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

const Result<Config>& process_config_result() {
  static const Result<Config> config = read_process_config();
  return config;
}

const Config& process_config() {
  static const Config config = process_config_result().ok() ? process_config_result().value() : defaults();
  return config;
}

std::vector<Config::Value> agreed_values(const Config& config) {
  std::vector<Config::Value> agreed;
  for (const Config::Value& value : config.values) {
    if (value.agreed) agreed.push_back(value);
  }
  return agreed;
}

uint64_t config_hash(const Config& config) {
  Hasher hasher;
  for (const Config::Value& value : config.values) {
    if (value.agreed) hasher.string(value.name).string(value.text);
  }
  return hasher.digest();
}

}  // namespace trestle
