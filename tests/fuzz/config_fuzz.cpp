// The environment: lines NAME=value with any values. The result is either a configuration whose own texts give the same
// configuration again, or an error that names the variable.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/config/config.h"
#include "base/config/config_table.h"

using namespace trestle;

namespace {

constexpr size_t kMostLines = 64;

bool is_variable(std::string_view name) {
  return find_variable(name) != nullptr;
}

// The source of a value has no effect on its meaning.
bool same_values(const Config& a, const Config& b) {
  return std::ranges::equal(a.values, b.values, [](const Config::Value& x, const Config::Value& y) {
    return std::string_view(x.name) == y.name && x.text == y.text && x.agreed == y.agreed;
  });
}

// A line without a variable's name is a value of the variable that its first character selects.
Environment environment_of(std::string_view text) {
  Environment environment;
  for (const std::string& line : split(text, '\n')) {
    if (environment.size() >= kMostLines) break;
    const size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    if (equals != std::string::npos && (is_variable(name) || name.find("_") != std::string::npos)) {
      environment[name] = line.substr(equals + 1);
    } else if (!line.empty()) {
      const auto row = static_cast<uint8_t>(line[0]) % std::size(kVariables);
      environment[kVariables[row].name] = line.substr(1);
    }
  }
  return environment;
}

void check_error(const Error& error, const Environment& environment) {
  CHECK(error.code == Code::kInvalidArgument, "a malformed variable has a code of its own");
  const std::string name = error.message.substr(0, error.message.find('='));
  CHECK(is_variable(name) && environment.count(name) != 0, "an error does not name the variable");
  const auto secret = environment.find("TRESTLE_SECRET");
  CHECK(name != "TRESTLE_SECRET" || error.message.find(secret->second) == std::string::npos, "an error tells a secret");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A file with this text gives at most a sentence that names the place.
  const Result<FileValues> file = parse_config_file({reinterpret_cast<const char*>(data), size}, "file");
  CHECK(file.ok() || file.error().message.starts_with("file:"), "an error of a file does not say where it is");
  const Environment environment = environment_of({reinterpret_cast<const char*>(data), size});
  const Result<Config> config = parse_config(environment);
  if (!config.ok()) {
    check_error(config.error(), environment);
    return 0;
  }
  Environment again;
  for (const Config::Value& value : config.value().values) {
    if (value.source != ConfigSource::kDefault) again[value.name] = value.text;
  }
  const Result<Config> reread = parse_config(again);
  CHECK(reread.ok(), "the texts of a configuration cannot be read");
  CHECK(same_values(reread.value(), config.value()), "the texts of a configuration mean something else");
  CHECK(!config_text(shown_variables(config.value())).empty(), "a configuration has no text");
  return 0;
}
