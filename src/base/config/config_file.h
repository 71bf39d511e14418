// Configuration files: lines NAME=value, blank lines, and comments from a # that begins a line or follows a blank.
//
// Value types. Reading is for the thread that first asks for the process's configuration; parsing is pure, any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/launcher.h"
#include "base/result.h"

namespace trestle {

struct FileValue {
  std::string text;
  std::string place;  // "PATH:LINE", for sentences
};
using FileValues = std::map<std::string, FileValue>;  // by variable

inline constexpr const char* kSystemConfigFile = "/etc/trestle.conf";

// kInvalidArgument, with path and line: a line that is no NAME=value, a name that no variable has (with the nearest
// one), one that cannot be set in a file, one that is set twice.
Result<FileValues> parse_config_file(std::string_view text, const std::string& path);

// What the files say together: `system_file`, and above it TRESTLE_CONF_FILE's, or where that is not set .trestle.conf
// in the home directory. A file that TRESTLE_CONF_FILE names must be there (kSystemError); the others need not.
Result<FileValues> read_config_files(const Environment& environment, const char* system_file = kSystemConfigFile);

// ", did you mean NAME?" with the variable whose name is closest, or "" where none is close.
std::string nearest_variable(std::string_view name);

}  // namespace trestle
