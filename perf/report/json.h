// A writer of JSON texts (RFC 8259), for the reports of -J.
//
// Value type; values are appended in order. Who uses it closes what it opens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trestle::perf {

class Json {
 public:
  Json& open(char bracket);   // '{' or '['
  Json& close(char bracket);  // '}' or ']'
  Json& key(std::string_view name);

  Json& text(std::string_view value);  // bytes that are no ASCII stay as they are
  Json& number(double value);          // null where it is not finite
  Json& integer(int64_t value);
  Json& truth(bool value);
  Json& null();
  Json& raw(std::string_view json);  // one value, already written

  const std::string& str() const { return out_; }

 private:
  void separate();

  std::string out_;
  bool first_ = true;  // nothing stands in the open bracket, or a key does
};

}  // namespace trestle::perf
