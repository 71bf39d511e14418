#include "transport/rails/rails_text.h"

#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr uint64_t kLeastBps = 1'000'000;
constexpr uint64_t kMostBps = 1'000'000'000'000'000;

struct Unit {
  char letter;
  uint64_t factor;
};
constexpr Unit kUnits[] = {{'g', 1'000'000'000}, {'m', 1'000'000}, {'k', 1'000}};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// `where` is the text that the item stands in.
Error refused(std::string_view item, const std::string& why, std::string_view where = {}) {
  std::string message = "'" + std::string(item) + "'";
  if (!where.empty()) message += " in '" + std::string(where) + "'";
  return Error{Code::kInvalidArgument, message + " is not a rail: " + why};
}

Error bad_rate(std::string_view text, std::string_view item) {
  return refused(item, "'" + std::string(text) +
                           "' is not a rate; it is written as bit/s with k, m or g, such as 25g or 2.5g, from " +
                           rate_text(kLeastBps) + " to " + rate_text(kMostBps));
}

bool is_kind(std::string_view text) {
  return parse_transport(std::string(text)).ok();
}

// The kernel's rules for names, and no characters that mean something here.
Status check_name(std::string_view name, std::string_view item) {
  if (name.empty()) return refused(item, "the interface is missing");
  if (name.front() == '=' || name.front() == '^')
    return refused(item, "it is the whole name of an interface; = and ^ belong to TRESTLE_SOCKET_IFNAME");
  if (name.size() >= IFNAMSIZ) return refused(item, "no interface has a name of more than 15 bytes");
  const auto strange = [](char c) { return c <= ' ' || c > '~' || c == '/' || c == ':'; };
  if (std::ranges::any_of(name, strange) || name == "." || name == "..")
    return refused(item, "no interface has such a name");
  return {};
}

Result<NamedInterface> parse_interface(std::string_view item) {
  const size_t at = std::min(item.find('@'), item.size());
  NamedInterface found;
  found.name = trimmed(item.substr(0, at));
  TRY(check_name(found.name, item));
  if (at == item.size()) return found;
  if (is_kind(found.name)) return refused(item, "a transport has no rate; the interfaces that it uses have");
  found.rate_bps = TRY(parse_rate_bps(trimmed(item.substr(at + 1)), item));
  return found;
}

Result<DimensionRails> parse_dimension(std::string_view text, std::string_view whole) {
  DimensionRails found;
  if (trimmed(text).empty()) return refused("", "there is nothing between two ; or at an end", whole);
  const std::vector<std::string> items = split(text, ',');
  for (const std::string& raw : items) {
    const std::string_view item = trimmed(raw);
    if (item.empty()) return refused("", "there is nothing between two , or at an end", trimmed(text));
    if (is_kind(item)) {
      if (items.size() > 1) return refused(item, "a transport stands alone in its dimension", trimmed(text));
      found.kind = TRY(parse_transport(std::string(item)));
      continue;
    }
    NamedInterface interface = TRY(parse_interface(item));
    const auto same = [&](const NamedInterface& other) { return other.name == interface.name; };
    if (std::ranges::any_of(found.interfaces, same))
      return refused(item, "the interface is there twice", trimmed(text));
    found.interfaces.push_back(std::move(interface));
  }
  return found;
}

}  // namespace

Result<uint64_t> parse_rate_bps(std::string_view text, std::string_view item) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, std::chars_format::fixed);
  if (digits == 0 || error != std::errc() || end != text.data() + digits) return bad_rate(text, item);
  uint64_t factor = 1;
  if (digits < text.size()) {
    const char letter = static_cast<char>(text[digits] | 0x20);
    const auto* unit = std::ranges::find(kUnits, letter, &Unit::letter);
    if (digits + 1 != text.size() || unit == std::end(kUnits)) return bad_rate(text, item);
    factor = unit->factor;
  }
  const double rate = std::round(value * static_cast<double>(factor));
  if (!(rate >= static_cast<double>(kLeastBps) && rate <= static_cast<double>(kMostBps))) return bad_rate(text, item);
  return static_cast<uint64_t>(rate);
}

std::string rate_text(uint64_t rate_bps) {
  for (const Unit& unit : kUnits) {
    if (rate_bps != 0 && rate_bps % unit.factor == 0) return std::to_string(rate_bps / unit.factor) + unit.letter;
  }
  return std::to_string(rate_bps);
}

Result<std::vector<DimensionRails>> parse_rails(std::string_view text) {
  std::vector<DimensionRails> rails;
  if (trimmed(text).empty()) return rails;
  for (const std::string& dimension : split(text, ';')) rails.push_back(TRY(parse_dimension(dimension, text)));
  return rails;
}

Result<std::vector<NamedInterface>> interfaces_of_all_dimensions(std::string_view text) {
  std::vector<NamedInterface> named;
  for (const DimensionRails& dimension : TRY(parse_rails(text))) {
    for (const NamedInterface& one : dimension.interfaces) {
      const bool known = std::any_of(named.begin(), named.end(), [&](const auto& n) { return n.name == one.name; });
      if (!known) named.push_back(one);
    }
  }
  return named;
}

DimensionRails rails_of_dimension(const std::vector<DimensionRails>& rails, size_t d) {
  return rails.empty() ? DimensionRails{} : rails[std::min(d, rails.size() - 1)];
}

std::string interfaces_text(const std::vector<NamedInterface>& interfaces) {
  std::string text;
  for (const NamedInterface& one : interfaces) {
    text += (text.empty() ? "" : ",") + one.name;
    if (one.rate_bps != 0) text += "@" + rate_text(one.rate_bps);
  }
  return text;
}

std::string rails_shape(const std::vector<DimensionRails>& rails) {
  std::string shape;
  for (const DimensionRails& dimension : rails) {
    if (!shape.empty()) shape += ';';
    shape += dimension.interfaces.empty() ? to_string(dimension.kind) : "interfaces";
  }
  return shape;
}

}  // namespace trestle
