// Words of JSON for what the executor writes. Pure functions, any thread.
#pragma once

#include <cstdio>
#include <string>

namespace trestle {

inline std::string json_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out.append(escaped);
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

}  // namespace trestle
