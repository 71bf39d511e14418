// Settings: the configuration of one communicator: the process's variables, overridden by the caller's config struct.
// Value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/result.h"

namespace trestle {

struct CommunicatorSettings {
  Config config;          // the overrides of the config struct are applied
  std::string name;       // for messages
  std::string dims;       // as TRESTLE_DIMS
  std::string transport;  // as TRESTLE_TRANSPORT
  bool blocking = true;   // creation and finalization wait, and do not return kInProgress
  // The rails over which the ranks meet and their control mesh moves, in the grammar of TRESTLE_RAILS. They come from
  // that variable and from the topology file. A split-off communicator takes them from its parent, unless it names its
  // own rails.
  std::string control_rails = {};
};

// What a caller may override. Unset fields keep the values of the variables.
struct SettingsOverride {
  int64_t timeout_ms = -1;
  int blocking = -1;  // -1: not set
  const char* name = nullptr;
  const char* dims = nullptr;
  const char* transport = nullptr;
  const char* algorithm = nullptr;
  const char* schedule = nullptr;
  const char* topology_file = nullptr;
  int64_t chunks = -1;
  // Values of variables, in the variable's own syntax.
  struct Value {
    const char* variable;
    std::string text;
  };
  std::vector<Value> values;
};

// Errors name the field or variable.
Result<CommunicatorSettings> make_settings(const Result<Config>& config, const SettingsOverride& overrides);

// Settings of a communicator split from one with settings `parent`. Values that list dimensions one by one (dims,
// topology file, lists of transports or algorithms) do not fit another shape. They are chosen anew, unless overridden.
// Where TRESTLE_RAILS lists dimensions, the interfaces of all of them count for each.
Result<CommunicatorSettings> make_child_settings(const CommunicatorSettings& parent, const SettingsOverride& overrides);

// The end of a wait that begins now, by the monotonic clock; kNoDeadline: never.
int64_t deadline_of(const CommunicatorSettings& settings);

}  // namespace trestle
