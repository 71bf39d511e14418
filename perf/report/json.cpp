#include "perf/report/json.h"

#include <cmath>
#include <cstdio>

namespace trestle::perf {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

void Json::separate() {
  if (!first_) out_ += ",";
  first_ = false;
}

Json& Json::open(char bracket) {
  separate();
  out_ += bracket;
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  out_ += bracket;
  first_ = false;
  return *this;
}

Json& Json::key(std::string_view name) {
  separate();
  out_ += quoted(name) + ":";
  first_ = true;
  return *this;
}

Json& Json::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

Json& Json::text(std::string_view value) {
  return raw(quoted(value));
}

Json& Json::number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return null();
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.10g", *value);
  return raw(digits);
}

Json& Json::numbers(const std::vector<double>& values) {
  open('[');
  for (const double value : values) number(value);
  return close(']');
}

Json& Json::integer(std::optional<int64_t> value) {
  return value ? raw(std::to_string(*value)) : null();
}

Json& Json::truth(bool value) {
  return raw(value ? "true" : "false");
}

Json& Json::null() {
  return raw("null");
}

}  // namespace trestle::perf
