// For tests of the command's output: a JSON parser, and a reader that finds malformed XML. One thread.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "topology/json_tree.h"

namespace trestle {

inline JsonValue read_json(const std::string& text) {
  Result<JsonValue> value = parse_json(text, "output");
  EXPECT_TRUE(value.ok()) << value.error().message << "\n" << text.substr(0, 2000);
  return value.ok() ? value.value() : JsonValue{};
}

inline std::set<std::string> keys_of(const JsonValue& value) {
  return {value.keys.begin(), value.keys.end()};
}

inline const JsonValue& member(const JsonValue& value, const std::string& key) {
  static const JsonValue none;
  for (size_t i = 0; i < value.keys.size(); ++i) {
    if (value.keys[i] == key) return value.items[i];
  }
  ADD_FAILURE() << "no member " << key;
  return none;
}

// Returns "" if elements nest, attributes are quoted and texts are escaped; else the error.
inline std::string xml_fault(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&' && xml.compare(at, 5, "&amp;") != 0 && xml.compare(at, 4, "&lt;") != 0 &&
        xml.compare(at, 4, "&gt;") != 0 && xml.compare(at, 6, "&quot;") != 0) {
      return "a bare & at " + std::to_string(at);
    }
    if (xml[at] == '>') return "a bare > at " + std::to_string(at);
    if (xml[at] != '<') continue;
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return "an element that does not end at " + std::to_string(at);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "a < in " + tag;
    size_t quotes = 0;
    for (const char c : tag) quotes += c == '"' ? 1 : 0;
    if (quotes % 2 != 0) return "an open quote in " + tag;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + "> closes another element";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

}  // namespace trestle
