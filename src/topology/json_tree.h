// JsonValue: a parsed JSON text in which every value knows its line, so that later errors about its meaning can name
// the line.
//
// Value type, any thread. Parsed by nlohmann-json's event interface, which reports errors instead of throwing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBoolean, kWhole, kReal, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  int line = 1;                   // line of the value, or of the key of an object's member; from 1
  uint64_t whole = 0;             // kWhole: not negative; kBoolean: 0 or 1
  double number = 0;              // kWhole and kReal
  std::string text;               // kString
  std::vector<std::string> keys;  // kObject: of items, in order
  std::vector<JsonValue> items;   // kArray and kObject
};

const char* to_string(JsonValue::Kind kind);

// Errors (kInvalidArgument) read "source:line: field: problem": bad syntax, an early end, a repeated key, more than 8
// levels.
Result<JsonValue> parse_json(const std::string& json, const std::string& source);

}  // namespace trestle
