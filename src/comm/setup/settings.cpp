#include "comm/setup/settings.h"

#include <algorithm>

#include "base/clock.h"
#include "rendezvous/bootstrap.h"
#include "sched/model/algo_rules.h"
#include "topology/topology.h"
#include "transport/rails/rails_text.h"

namespace trestle {

namespace {

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// Ranks compare the table of values, so an override must appear there too.
void set_value(Config& config, const char* name, const std::string& text) {
  for (Config::Value& value : config.values) {
    if (std::string_view(value.name) != name) continue;
    value.text = text;
    value.source = ConfigSource::kStruct;
    value.place.clear();
  }
}

// Whether a rule names one algorithm per dimension. Excluded names, and rules by size, fit any shape.
bool names_dimensions(const std::string& algorithms) {
  const auto rules = AlgorithmRules::parse(algorithms);
  return rules.ok() && std::ranges::any_of(rules.value().entries(), [](const AlgorithmRules::Entry& entry) {
           return !entry.rule.exclude && entry.rule.algorithms.size() > 1;
         });
}

// TRESTLE_RAILS without its dimensions: the interfaces of all of them, each once. A single dimension fits any shape.
std::string rails_of_any_shape(const std::string& text) {
  const auto said = parse_rails(text);
  const auto all = interfaces_of_all_dimensions(text);
  return said.ok() && said.value().size() > 1 && all.ok() ? interfaces_text(all.value()) : text;
}

// The interfaces of TRESTLE_RAILS and of the topology file, as a text of TRESTLE_RAILS. A file or a name that is wrong
// is an error when the topology or its transports are made.
std::string control_rails(const Config& config) {
  std::string all = config.rails;
  const auto add = [&all](const std::string& rails) {
    const bool one_dimension = rails.find(';') == std::string::npos;
    if (!rails.empty() && one_dimension && parse_rails(rails).ok()) all += (all.empty() ? "" : ";") + rails;
  };
  if (config.topology_file.empty()) return all;
  const auto topology = read_topology_file(config.topology_file);
  if (!topology.ok()) return all;
  for (const Dimension& dimension : topology.value().dimensions) {
    const bool has_rails = dimension.transport == TransportKind::kAuto || facts_of(dimension.transport).has_interfaces;
    if (has_rails) add(interfaces_text(dimension));
  }
  return all;
}

}  // namespace

Result<CommunicatorSettings> make_settings(const Result<Config>& process, const SettingsOverride& overrides) {
  if (!process.ok()) return process.error();
  CommunicatorSettings settings;
  Config& config = settings.config;
  config = process.value();
  settings.blocking = overrides.blocking != 0;
  settings.name = overrides.name != nullptr ? overrides.name : "";
  for (const SettingsOverride::Value& value : overrides.values) TRY(override_value(config, value.variable, value.text));
  constexpr int64_t kLongestMs = int64_t{1} << 40;  // three decades: sums of times stay far from overflow
  if (overrides.timeout_ms >= 0) config.timeout_ns = std::min(overrides.timeout_ms, kLongestMs) * 1'000'000;
  if (overrides.algorithm != nullptr) {
    config.algorithm = overrides.algorithm;
    set_value(config, "TRESTLE_ALGO", config.algorithm);
  }
  if (overrides.schedule != nullptr) {
    config.schedule = overrides.schedule;
    set_value(config, "TRESTLE_SCHED", config.schedule);
  }
  if (overrides.chunks >= 0) {
    config.chunks = overrides.chunks;
    set_value(config, "TRESTLE_CHUNKS", std::to_string(config.chunks));
  }
  if (overrides.topology_file != nullptr) config.topology_file = overrides.topology_file;
  std::vector<std::string> sizes;
  for (uint32_t size : config.dimensions) sizes.push_back(std::to_string(size));
  settings.dims = overrides.dims != nullptr ? overrides.dims : join(sizes, "x");
  if (!settings.dims.empty()) TRY(parse_dims(settings.dims));
  if (overrides.dims != nullptr) set_value(config, "TRESTLE_DIMS", settings.dims);
  settings.transport = overrides.transport != nullptr ? overrides.transport : join(config.transports, ",");
  if (overrides.transport != nullptr) set_value(config, "TRESTLE_TRANSPORT", settings.transport);
  settings.control_rails = control_rails(config);
  return settings;
}

Result<CommunicatorSettings> make_child_settings(const CommunicatorSettings& parent,
                                                 const SettingsOverride& overrides) {
  const auto is_list = [](const std::string& text) { return text.find(',') != std::string::npos; };
  Config config = parent.config;
  config.dimensions.clear();
  config.topology_file.clear();
  config.transports = {is_list(parent.transport) ? "auto" : parent.transport};
  if (names_dimensions(config.algorithm)) config.algorithm.clear();
  config.rails = rails_of_any_shape(parent.config.rails);
  set_value(config, "TRESTLE_DIMS", "");
  set_value(config, "TRESTLE_RAILS", config.rails);
  set_value(config, "TRESTLE_TRANSPORT", config.transports[0]);
  set_value(config, "TRESTLE_ALGO", config.algorithm);
  CommunicatorSettings settings = TRY(make_settings(config, overrides));
  if (overrides.blocking < 0) settings.blocking = parent.blocking;
  if (settings.control_rails == config.rails) settings.control_rails = parent.control_rails;
  return settings;
}

int64_t deadline_of(const CommunicatorSettings& settings) {
  if (settings.config.timeout_ns <= 0) return kNoDeadline;
  return monotonic_clock().now_ns() + settings.config.timeout_ns;
}

}  // namespace trestle
