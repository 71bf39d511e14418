// For tests of the command's output: JSON, a reader that finds malformed XML, files that end with their test. One
// thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>

#include "base/result.h"
#include "base/text/json.h"
#include "local/temporary_folder.h"

namespace trestle {

inline Json read_json(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << text.substr(0, 2000);
  return value;
}

// In their order.
inline std::string keys_of(const Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) keys.append(keys.empty() ? "" : " ").append(key);
  return keys;
}

inline void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

// The sentence of a refusal.
template <class T>
std::string refusal_of(const Result<T>& result) {
  return result.ok() ? "accepted" : result.error().message;
}

// A file that is gone with its test.
class NamedFile {
 public:
  explicit NamedFile(const std::string& name, const std::string& text = "") : name_(name) { folder_.write(name, text); }
  std::string path() const { return folder_.path(name_); }
  std::string text() const { return folder_.content(name_); }

 private:
  const TemporaryFolder folder_;
  const std::string name_;
};

// VGG-19 as DeFT's table II has it, with the corrected bucket 4. If a byte takes a microsecond, each tensor is a
// bucket.
inline constexpr const char* kVgg19 = R"({"tensors": [
  {"bytes": 1968, "forward_s": 0.001238, "backward_s": 0.072496},
  {"bytes": 11262, "forward_s": 0.028799, "backward_s": 0.012786},
  {"bytes": 15447, "forward_s": 0.004801, "backward_s": 0.004872},
  {"bytes": 188643, "forward_s": 0.001899, "backward_s": 0.002319},
  {"bytes": 31754, "forward_s": 0.000326, "backward_s": 0.000484},
  {"bytes": 8651, "forward_s": 0.000103, "backward_s": 0.000162}]})";

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
