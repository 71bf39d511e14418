#include "base/text/value_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace trestle {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr std::array<Unit, 6> kDurationUnits = {{{"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr std::array<Unit, 4> kByteUnits = {{{"T", 1LL << 40}, {"G", 1LL << 30}, {"M", 1LL << 20}, {"K", 1LL << 10}}};

Error invalid(std::string_view text, const char* expected) {
  std::string message("'");
  message.append(text).append("' is not ").append(expected);
  return Error{Code::kInvalidArgument, std::move(message)};
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

template <class Number>
bool parse_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  if (!parse_whole(text, value)) return invalid(text, "an integer");
  return value;
}

Result<int64_t> parse_bytes(std::string_view text) {
  static constexpr const char* kExpected = "a number of bytes such as 4096, 64K, 1.5M or 1G";
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, digits);
  std::string unit = upper(text.substr(digits));
  if (unit.ends_with("IB") && unit.size() == 3) unit.resize(1);
  if (unit.ends_with('B')) unit.pop_back();
  const auto* known = std::ranges::find(kByteUnits, unit, &Unit::name);
  if (!unit.empty() && known == kByteUnits.end()) return invalid(text, kExpected);
  const int64_t factor = unit.empty() ? 1 : known->factor;
  if (int64_t whole = 0; parse_whole(number, whole)) {
    if (whole > std::numeric_limits<int64_t>::max() / factor) return invalid(text, kExpected);
    return whole * factor;
  }
  double value = 0;
  if (number.find('.') == std::string_view::npos || !parse_whole(number, value)) return invalid(text, kExpected);
  const double bytes = std::floor(value * static_cast<double>(factor));
  if (!(bytes < 9.2e18)) return invalid(text, kExpected);
  return static_cast<int64_t>(bytes);
}

Result<int64_t> parse_duration_ns(std::string_view text) {
  static constexpr const char* kExpected = "a duration such as 200ms, 5s, 10m or 1h (a plain number is seconds)";
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  if (!parse_whole(text.substr(0, digits), value)) return invalid(text, kExpected);
  const std::string_view unit = digits == text.size() ? "s" : text.substr(digits);
  for (const Unit& known : kDurationUnits) {
    if (unit != known.name) continue;
    const double time_ns = std::round(value * static_cast<double>(known.factor));
    if (!(time_ns < 9.2e18)) return invalid(text, kExpected);
    return static_cast<int64_t>(time_ns);
  }
  return invalid(text, kExpected);
}

Result<bool> parse_boolean(std::string_view text) {
  const std::string word = upper(text);
  if (word == "1" || word == "TRUE" || word == "YES" || word == "ON") return true;
  if (word == "0" || word == "FALSE" || word == "NO" || word == "OFF") return false;
  return invalid(text, "1 or 0 (or true, false, yes, no, on, off)");
}

Result<std::vector<uint32_t>> parse_dimensions(std::string_view text) {
  static constexpr const char* kExpected =
      "a list of dimension sizes such as 4x2 (innermost first, each at least 1, at most 2^31 ranks together)";
  std::vector<uint32_t> sizes;
  uint64_t ranks = 1;
  for (const std::string& item : split(text, 'x')) {
    uint32_t size = 0;
    if (!parse_whole(item, size) || size == 0) return invalid(text, kExpected);
    ranks *= size;
    if (ranks > (1ULL << 31)) return invalid(text, kExpected);
    sizes.push_back(size);
  }
  return sizes;
}

Result<PortRange> parse_port_range(std::string_view text) {
  if (text.empty()) return PortRange{};
  const size_t dash = std::min(text.find('-'), text.size());
  PortRange range;
  bool good = parse_whole(text.substr(0, dash), range.low);
  range.high = range.low;
  if (dash < text.size()) good = good && parse_whole(text.substr(dash + 1), range.high);
  if (!good || range.low == 0 || range.high < range.low) {
    return invalid(text, "a port range such as 50000-50999 (ports 1 to 65535, lower one first)");
  }
  return range;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  for (;;) {
    const size_t end = text.find(separator);
    items.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return items;
    text.remove_prefix(end + 1);
  }
}

std::string bytes_text(int64_t bytes) {
  for (const Unit& unit : kByteUnits) {
    if (bytes != 0 && bytes % unit.factor == 0) return std::to_string(bytes / unit.factor).append(unit.name);
  }
  return std::to_string(bytes);
}

std::string duration_text(int64_t time_ns) {
  for (const Unit& unit : kDurationUnits) {
    if (time_ns != 0 && time_ns % unit.factor == 0) return std::to_string(time_ns / unit.factor).append(unit.name);
  }
  return std::to_string(time_ns);
}

}  // namespace trestle
