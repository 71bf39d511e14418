// A writer of JSON texts (RFC 8259), for the reports of -J.
//
// Value type. Values are appended in order. The caller must close what it opens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trestle::perf {

class Json {
 public:
  Json& open(char bracket);   // '{' or '['
  Json& close(char bracket);  // '}' or ']'
  Json& key(std::string_view name);

  Json& text(std::string_view value);                // non-ASCII bytes are unchanged
  Json& number(std::optional<double> value);         // null if there is none, or none that is finite
  Json& numbers(const std::vector<double>& values);  // an array
  Json& integer(std::optional<int64_t> value);       // null if there is none
  Json& truth(bool value);
  Json& null();
  Json& raw(std::string_view json);  // one value that is JSON already

  const std::string& str() const { return out_; }

 private:
  void separate();

  std::string out_;
  bool first_ = true;  // the open bracket is empty, or ends with a key
};

}  // namespace trestle::perf
