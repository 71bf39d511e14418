#include "base/config/config.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/config/config_fields.h"
#include "base/config/config_nccl.h"
#include "base/config/config_table.h"
#include "base/fork.h"

namespace trestle {
namespace {

constexpr std::string_view kPrefix = "TRESTLE_";

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

// A bad log file must not be an error if only NCCL's variable names it.
Status configure_log_of(Config& config) {
  const LogSettings settings = {config.debug_level, config.debug_subsystems, config.debug_file};
  const Status status = configure_log(settings);
  const auto file = std::ranges::find(config.values, std::string_view("TRESTLE_DEBUG_FILE"), &Config::Value::name);
  if (status.ok() || file->source != ConfigSource::kNccl) return status;
  config.warnings.push_back("NCCL_DEBUG_FILE: " + status.error().message + "; ignored");
  config.debug_file.clear();
  file->text.clear();
  file->source = ConfigSource::kDefault;
  return configure_log({settings.level, settings.subsystems, ""});
}

Result<Config> read_process_config() {
  const Environment environment = process_environment();
  const Result<FileValues> files = read_config_files(environment);
  Result<Config> config = files.ok() ? parse_config(environment, files.value()) : Result<Config>(files.error());
  const Status log_status = config.ok() ? configure_log_of(config.value()) : configure_log({});
  if (!log_status.ok()) return log_status.error();
  if (!config.ok()) return config;
  for (const std::string& warning : config.value().warnings) LOG(kWarn, kEnv, "%s", warning.c_str());
  for (const Config::Value& value : config.value().values) {
    if (value.source == ConfigSource::kDefault) continue;
    LOG(kInfo, kEnv, "%s set by %s to %s", value.name, source_text(value).c_str(), value.text.c_str());
  }
  return config;
}

// The value of a row, from the strongest source that sets it.
struct Setting {
  std::string text;
  ConfigSource source = ConfigSource::kDefault;
  std::string place;
};

Setting setting_of(const Variable& row, const Environment& environment, const FileValues& files,
                   const std::vector<Fallback>& fallbacks) {
  const auto set = environment.find(row.name);
  if (set != environment.end() && !set->second.empty()) return {set->second, ConfigSource::kEnvironment, ""};
  const auto in_file = files.find(row.name);
  if (in_file != files.end() && !in_file->second.text.empty()) {
    return {in_file->second.text, ConfigSource::kFile, in_file->second.place};
  }
  for (const Fallback& fallback : fallbacks) {
    if (std::string_view(fallback.variable) == row.name && !fallback.text.empty())
      return {fallback.text, ConfigSource::kNccl, fallback.nccl};
  }
  return {row.fallback, ConfigSource::kDefault, ""};
}

// Adds the warnings about NCCL's variables that are not overridden. The others do not matter.
void add_fallback_warnings(Config& config, const std::vector<Fallback>& fallbacks) {
  for (const Fallback& fallback : fallbacks) {
    const auto ours = std::ranges::find(config.values, std::string_view(fallback.variable), &Config::Value::name);
    if (ours->source > ConfigSource::kNccl) continue;
    config.warnings.insert(config.warnings.end(), fallback.warnings.begin(), fallback.warnings.end());
  }
}

}  // namespace

Result<Config> parse_config(const Environment& environment, const FileValues& files) {
  Config config;
  const std::vector<Fallback> fallbacks = nccl_fallbacks(environment);
  for (const Variable& row : kVariables) {
    const Setting setting = setting_of(row, environment, files, fallbacks);
    const Status read = set_config_value(config, row, setting.text);
    if (!read.ok() && setting.source != ConfigSource::kFile) return read.error();
    if (!read.ok()) return Error{read.error().code, setting.place + ": " + read.error().message};
    const bool hidden = row.kind == VariableKind::kSecret && setting.source != ConfigSource::kDefault;
    config.values.push_back({row.name, hidden ? "(set)" : canonical_text(row, setting.text), setting.source,
                             setting.place, row.scope == Scope::kAgreed});
  }
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || find_variable(name) != nullptr) continue;
    config.warnings.push_back("environment variable " + name + " does not exist and is ignored" +
                              nearest_variable(name));
  }
  add_fallback_warnings(config, fallbacks);
  config.launcher = read_launcher(environment);
  if (config.calibration_folder.empty()) config.calibration_folder = cache_folder(environment);
  return config;
}

Status override_value(Config& config, const char* variable, const std::string& text) {
  const Variable* row = find_variable(variable);
  CHECK(row != nullptr, "a field of the config struct stands for a variable that does not exist");
  const Status read = set_config_value(config, *row, text);
  if (!read.ok()) {
    return Error{read.error().code, "config." + std::string(field_of(variable)) + ": " + read.error().message};
  }
  Config::Value& value = config.values[static_cast<size_t>(row - std::begin(kVariables))];
  value.text = row->kind == VariableKind::kSecret ? "(set)" : canonical_text(*row, text);
  value.source = ConfigSource::kStruct;
  value.place.clear();
  return {};
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
  static constinit PerProcess<const Result<Config>> config;
  return config.get(read_process_config);
}

const Config& process_config() {
  static constinit PerProcess<const Config> config;
  return config.get([] { return process_config_result().ok() ? process_config_result().value() : defaults(); });
}

std::vector<Config::Value> agreed_values(const Config& config) {
  std::vector<Config::Value> agreed;
  for (const Config::Value& value : config.values) {
    if (value.agreed) agreed.push_back(value);
  }
  return agreed;
}

}  // namespace trestle
