// Configuration files: lines NAME=value, blank lines, and comments from a # at the start of a line or after a blank.
//
// Value types. Files are read by the thread that first asks for the process's configuration. Parsing is pure, any
// thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/launcher.h"
#include "base/result.h"

namespace trestle {

struct FileValue {
  std::string text;
  std::string place;  // "PATH:LINE", for error messages
};
using FileValues = std::map<std::string, FileValue>;  // by variable

inline constexpr const char* kSystemConfigFile = "/etc/trestle.conf";

// kInvalidArgument, with path and line: a line that is not NAME=value, an unknown name (with the nearest known one), a
// name that cannot be set in a file, a name that is set twice.
Result<FileValues> parse_config_file(std::string_view text, const std::string& path);

// The combined values of the files: `system_file`, overridden by TRESTLE_CONF_FILE's or, if that is not set, by
// .trestle.conf in the home directory. A file that TRESTLE_CONF_FILE names must exist (kSystemError); the others need
// not.
Result<FileValues> read_config_files(const Environment& environment, const char* system_file = kSystemConfigFile);

// ", did you mean NAME?" with the closest variable name, or "" if none is close.
std::string nearest_variable(std::string_view name);

}  // namespace trestle
