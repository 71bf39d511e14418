// Settings: the configuration of one communicator: the process's variables overlaid by the caller's config struct.
// Value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/result.h"

namespace trestle {

struct CommunicatorSettings {
  Config config;          // with what the config struct overrides written into it
  std::string name;       // for messages
  std::string dims;       // as TRESTLE_DIMS
  std::string transport;  // as TRESTLE_TRANSPORT
  bool blocking = true;   // making and finalizing wait, and do not return kInProgress
};

// What a caller may override; undefined fields keep what the variables say.
struct SettingsOverride {
  int64_t timeout_ms = -1;
  int blocking = -1;  // or 0, 1
  const char* name = nullptr;
  const char* dims = nullptr;
  const char* transport = nullptr;
  const char* algorithm = nullptr;
  const char* schedule = nullptr;
  const char* topology_file = nullptr;
  int64_t chunks = -1;
  // Values of variables, in their own grammar.
  struct Value {
    const char* variable;
    std::string text;
  };
  std::vector<Value> values;
};

// Errors name the field or variable.
Result<CommunicatorSettings> make_settings(const Result<Config>& config, const SettingsOverride& overrides);

// Of a communicator made of some ranks of one with these settings. What speaks of dimensions one by one (dims, topology
// file, lists of transports or algorithms) does not fit another shape: chosen anew, unless overridden.
Result<CommunicatorSettings> make_child_settings(const CommunicatorSettings& parent, const SettingsOverride& overrides);

// When a wait that begins now has to end, by the monotonic clock; kNoDeadline: never.
int64_t deadline_of(const CommunicatorSettings& settings);

}  // namespace trestle
