// The syntax of single values in variables, flags and files: bytes, durations, booleans, dimensions, port ranges.
//
// Pure functions, any thread. Every failure is kInvalidArgument with a sentence that quotes the text and names the
// allowed values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trestle {

struct PortRange {
  uint16_t low = 0;  // 0 and 0: any port
  uint16_t high = 0;
  bool operator==(const PortRange&) const = default;
};

Result<int64_t> parse_integer(std::string_view text);  // decimal, optional minus
Result<int64_t> parse_bytes(std::string_view text);  // 4096, 64K, 64KB, 64KiB, 1.5M, 1G; K is 1024, parts of a byte go
Result<int64_t> parse_duration_ns(std::string_view text);  // 1.5s, 200ms, 50us, 10m, 2h; a plain number is seconds
Result<bool> parse_boolean(std::string_view text);         // 1 0 true false yes no on off
Result<std::vector<uint32_t>> parse_dimensions(std::string_view text);  // 4x2, innermost first; empty: none given
Result<PortRange> parse_port_range(std::string_view text);              // 5000-5999, 5000; empty: any
std::vector<std::string> split(std::string_view text, char separator);  // items may be empty; an empty text has none

std::string bytes_text(int64_t bytes);       // the shortest text that parse_bytes reads back: 64M
std::string duration_text(int64_t time_ns);  // the shortest text that parse_duration_ns reads back: 10m, 200ms

}  // namespace trestle
