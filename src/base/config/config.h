// Config: every TRESTLE_ variable, read once into plain values. The sources are: the environment, else a configuration
// file, else NCCL's variable with the same meaning, else the default. docs/environment.md is printed from the same
// table.
//
// Value type. The process's own is parsed on first use and never changes; any thread. Code below `comm` does not use
// Config; it takes the values it needs. A new variable needs one member here and one row in config_table.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/config_file.h"
#include "base/config/launcher.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text/value_text.h"

namespace trestle {

// Where a value comes from. A later one overrides an earlier one.
enum class ConfigSource : uint8_t { kDefault, kNccl, kFile, kEnvironment, kStruct };

struct Config {
  std::string config_file;
  LogLevel debug_level{};
  uint32_t debug_subsystems = 0;
  std::string debug_file;

  std::vector<uint32_t> dimensions;  // innermost first; empty: not given
  std::string topology_file;
  std::string host_id;
  std::vector<std::string> transports;  // innermost dimension first; the last one also applies beyond
  std::string algorithm;
  std::string schedule;
  std::string intra;
  int64_t chunks = 0;            // 0: chosen by predicted time
  int64_t segment_bytes = 0;     // 0: chosen per rail
  int64_t phases_in_flight = 0;  // per dimension; 0: chosen by the schedule
  bool check_plans = false;
  bool check_calls = false;
  std::string calibrate;
  std::string calibration_folder;  // "": there is none

  int64_t timeout_ns = 0;
  int64_t heartbeat_ns = 0;

  std::string secret;  // never printed, logged or hashed
  std::string job;
  std::string communicator_id;
  std::string store;
  std::string socket_interfaces;
  std::string socket_family;
  std::string rails;
  int64_t rail_timeout_ns = 0;
  PortRange port_range;
  std::string congestion_control;

  bool express = false;
  int64_t express_bytes = 0;
  int64_t device_express_bytes = 0;
  std::string device_express_processes;
  int64_t eager_bytes = 0;
  int64_t staging_bytes = 0;
  bool map_shared_memory = false;
  bool peer_access = false;
  std::string host_path;
  int64_t spin_us = 0;  // -1: auto
  bool progress_thread = false;
  int64_t device = -1;           // -1: none
  int64_t progress_threads = 0;  // 0: one for each NUMA node

  Launcher launcher;

  // One per row of the table, in its order: shown by `trestle env` and compared by ranks. A secret's text is "(set)" or
  // empty.
  struct Value {
    const char* name;
    std::string text;
    ConfigSource source;
    std::string place;  // "PATH:LINE" of a file, the name of NCCL's variable; else ""
    bool agreed;
    bool operator==(const Value&) const = default;
  };
  std::vector<Value> values;
  std::vector<std::string>
      warnings;  // about TRESTLE_ names that do not exist, and NCCL's values that mean nothing here
};

// Empty counts as not set. kInvalidArgument for the first unreadable variable, with its name, its value, the allowed
// values, and the line of the file.
Result<Config> parse_config(const Environment& environment, const FileValues& files = {});

// A value from the config struct, in the syntax of its variable. kInvalidArgument names the field.
Status override_value(Config& config, const char* variable, const std::string& text);

// The environment of the process, now.
Environment process_environment();

// The process's configuration, parsed once, at the first call. That call also configures the log and logs warnings.
const Result<Config>& process_config_result();
// The process's configuration, or the defaults if it could not be parsed. By then the creation of a communicator has
// returned the error.
const Config& process_config();

// The rows that must be equal on all ranks.
std::vector<Config::Value> agreed_values(const Config& config);

// "environment", "default", "NCCL_ALGO", "PATH:LINE", ...
std::string source_text(const Config::Value& value);

// A row of the table with its value, for people and programs.
struct ShownVariable {
  Config::Value value;
  std::string fallback;  // the default, in the spelling of the value
  std::string meaning;
  std::string allowed;
};
// Those whose name, meaning or value contains `word`, however it is written. changed: of these only the ones that have
// another value than the default.
std::vector<ShownVariable> shown_variables(const Config& config, const std::string& word = "", bool changed = false);

std::string config_markdown();                                         // docs/environment.md
std::string config_text(const std::vector<ShownVariable>& variables);  // `trestle env`

}  // namespace trestle
