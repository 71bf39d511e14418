#include "cli/option_values.h"

#include <charconv>
#include <cmath>

#include "base/text/value_text.h"

namespace trestle {

Result<double> finite_value(const std::string& option, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc() || read.ptr != end || !std::isfinite(value)) {
    return invalid_argument(option + ": \"" + text + "\" is not a number");
  }
  return value;
}

Result<double> real_value(const std::string& option, const std::string& text) {
  const double value = TRY(finite_value(option, text));
  if (value < 0) return invalid_argument(option + ": " + text + " is negative");
  return value;
}

Result<std::vector<double>> real_list(const std::string& option, const std::string& text) {
  std::vector<double> values;
  for (const std::string& word : split(text, ',')) values.push_back(TRY(real_value(option, word)));
  if (values.empty()) return invalid_argument(option + ": names no number");
  return values;
}

Result<uint32_t> count_value(const std::string& option, const std::string& text, int64_t least, int64_t most) {
  const Result<int64_t> count = parse_integer(text);
  if (!count.ok()) return invalid_argument(option + ": " + count.error().message);
  if (count.value() < least || count.value() > most) {
    return invalid_argument(option + ": " + text + " is not from " + std::to_string(least) + " to " +
                            std::to_string(most));
  }
  return static_cast<uint32_t>(count.value());
}

Result<uint64_t> bytes_value(const std::string& option, const std::string& text) {
  const Result<int64_t> bytes = parse_bytes(text);
  if (!bytes.ok()) return invalid_argument(option + ": " + bytes.error().message);
  if (bytes.value() < 1) return invalid_argument(option + ": must be at least 1");
  return static_cast<uint64_t>(bytes.value());
}

Result<std::vector<std::string>> named_words(const std::string& option, const std::string& text,
                                             const std::string& names) {
  const std::vector<std::string> found = split(text, ',');
  if (found.size() != split(names, ',').size()) return invalid_argument(option + ": \"" + text + "\" is not " + names);
  return found;
}

Result<RealPair> real_pair(const std::string& option, const std::string& text, const std::string& names) {
  const std::vector<std::string> found = TRY(named_words(option, text, names));
  return RealPair{TRY(real_value(option, found[0])), TRY(real_value(option, found[1]))};
}

Result<std::vector<NamedTopology>> systems_in(const std::string& topology_file) {
  std::vector<NamedTopology> systems;
  if (!topology_file.empty()) systems.push_back({topology_file, TRY(read_topology_file(topology_file))});
  return systems;
}

}  // namespace trestle
