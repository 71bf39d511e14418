#include "cli/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace trestle::json {
namespace {

// Three digits are enough for a time in nanoseconds, but too few for a fraction. So small values get six.
int digits_after_point(double value) {
  return std::fabs(value) < 1000 ? 6 : 3;
}

std::string joined(const std::vector<std::string>& values, char open, char close) {
  std::string all(1, open);
  for (const std::string& value : values) all.append(all.size() == 1 ? "" : ",").append(value);
  return all + close;
}

}  // namespace

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.*f", digits_after_point(value), value);
  std::string all(digits);
  all.erase(all.find_last_not_of('0') + 1);
  if (all.back() == '.') all.pop_back();
  return all == "-0" ? "0" : all;
}

std::string exact(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, written.ptr};
}

std::string text(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string array(const std::vector<std::string>& values) {
  return joined(values, '[', ']');
}

std::string object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : members) texts.push_back(text(key) + ":" + value);
  return joined(texts, '{', '}');
}

}  // namespace trestle::json
