// Interprets the fields of a topology file and checks their types and ranges.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "topology/internal.h"
#include "topology/json_tree.h"

namespace trestle {
namespace {

using Kind = JsonValue::Kind;

constexpr uint64_t kMostMbps = 1'000'000'000;

// The reader's position, for error messages.
struct Place {
  const std::string& source;
  std::string where;  // "dimension 2: " or ""

  Error error(const JsonValue& value, const std::string& field, const std::string& what) const {
    return Error{Code::kInvalidArgument,
                 source + ":" + std::to_string(value.line) + ": " + where + (field.empty() ? "" : field + ": ") + what};
  }
  Error wrong_type(const JsonValue& value, const std::string& field, const char* wanted) const {
    return error(value, field, std::string("must be ") + wanted + ", not " + to_string(value.kind));
  }
};

Error unknown_key(const Place& place, const JsonValue& value, const std::string& key,
                  std::span<const char* const> known) {
  return place.error(value, "", unknown_name(key, "a field", {known.begin(), known.end()}).message);
}

// Accepts 700.0 as a whole number, because some JSON writers have only one kind of number.
Result<uint64_t> whole(const Place& place, const JsonValue& value, const std::string& field, uint64_t least,
                       uint64_t most) {
  if (value.kind != Kind::kWhole && value.kind != Kind::kReal) {
    return place.wrong_type(value, field, "a whole number");
  }
  const bool in_range = value.number >= static_cast<double>(least) && value.number <= static_cast<double>(most);
  if (!in_range || value.number != std::floor(value.number)) {
    return place.error(value, field,
                       "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<uint64_t>(value.number);
}

Result<bool> boolean(const Place& place, const JsonValue& value, const std::string& field) {
  if (value.kind != Kind::kBoolean) return place.wrong_type(value, field, "true or false");
  return value.whole != 0;
}

Result<std::string> name(const Place& place, const JsonValue& value, const std::string& field) {
  static constexpr size_t kMostBytes = 64;
  if (value.kind != Kind::kString) return place.wrong_type(value, field, "a string");
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  if (value.text.empty() || value.text.size() > kMostBytes || !std::ranges::all_of(value.text, printable)) {
    return place.error(value, field, "must be a name of 1 to 64 printable ASCII characters without blanks");
  }
  return value.text;
}

Result<uint64_t> bandwidth_mbps(const Place& place, const JsonValue& value, const std::string& field) {
  if (value.kind != Kind::kWhole && value.kind != Kind::kReal) return place.wrong_type(value, field, "a number");
  if (!(value.number >= 0.001 && value.number * 1000 <= static_cast<double>(kMostMbps))) {
    return place.error(value, field, "must be above 0 (from 0.001 to 1000000 Gb/s)");
  }
  return static_cast<uint64_t>(std::llround(value.number * 1000));
}

Result<DimensionKind> kind(const Place& place, const JsonValue& value, const std::string& field) {
  if (value.kind != Kind::kString) return place.wrong_type(value, field, "a string");
  static constexpr DimensionKind kKinds[] = {DimensionKind::kRing, DimensionKind::kFullyConnected,
                                             DimensionKind::kSwitch};
  std::vector<std::string_view> names;
  for (const DimensionKind known : kKinds) {
    names.emplace_back(to_string(known));
    if (value.text == names.back()) return known;
  }
  return place.error(value, field, unknown_name(value.text, "a kind", names).message);
}

Result<TransportKind> transport(const Place& place, const JsonValue& value, const std::string& field) {
  if (value.kind != Kind::kString) return place.wrong_type(value, field, "a string");
  auto parsed = parse_transport(value.text);
  if (!parsed) return place.error(value, field, parsed.error().message);
  return parsed;
}

Result<uint64_t> link_mbps(const Place& place, const JsonValue& value, const std::string& field) {
  const auto mbps = named_link_mbps(TRY(name(place, value, field)));
  if (!mbps.ok()) return place.error(value, field, mbps.error().message);
  return mbps;
}

Status shared(const Place& place, const JsonValue& value, Dimension& dimension) {
  static constexpr const char* kKeys[] = {"resource", "ps_per_byte"};
  static constexpr uint64_t kMostPs = 1'000'000'000;
  if (value.kind != Kind::kObject) return place.wrong_type(value, "shared", "an object");
  for (size_t i = 0; i < value.keys.size(); ++i) {
    const JsonValue& item = value.items[i];
    const std::string field = "shared." + value.keys[i];
    if (value.keys[i] == "resource") {
      dimension.shared_resource = TRY(name(place, item, field));
    } else if (value.keys[i] == "ps_per_byte") {
      dimension.shared_ps_per_byte = TRY(whole(place, item, field, 1, kMostPs));
    } else {
      return unknown_key(Place{place.source, place.where + "shared: "}, item, value.keys[i], kKeys);
    }
  }
  if (dimension.shared_resource.empty()) return place.error(value, "shared.resource", "is missing");
  if (dimension.shared_ps_per_byte == 0) return place.error(value, "shared.ps_per_byte", "is missing");
  return {};
}

// A name that stands for itself in the grammar of TRESTLE_RAILS, by which it reaches the transport.
Result<std::string> rail_name(const Place& place, const JsonValue& value) {
  std::string text = TRY(name(place, value, "interface"));
  if (text.find_first_of(",;@") != std::string::npos || parse_transport(text).ok()) {
    return place.error(value, "interface",
                       "'" + text +
                           "' is not the name of one interface; every further rail is an item of its own, and "
                           "its rate is bandwidth_gbps");
  }
  return text;
}

Result<DimensionRail> rail(const Place& place, const JsonValue& value) {
  static constexpr const char* kKeys[] = {"interface", "bandwidth_gbps"};
  if (value.kind != Kind::kObject) return place.wrong_type(value, "", "an object");
  DimensionRail found;
  for (size_t i = 0; i < value.keys.size(); ++i) {
    if (value.keys[i] == "interface") {
      found.interface = TRY(rail_name(place, value.items[i]));
    } else if (value.keys[i] == "bandwidth_gbps") {
      found.bandwidth_mbps = TRY(bandwidth_mbps(place, value.items[i], value.keys[i]));
    } else {
      return unknown_key(place, value.items[i], value.keys[i], kKeys);
    }
  }
  if (found.interface.empty()) return place.error(value, "interface", "is missing");
  return found;
}

Result<std::vector<DimensionRail>> rails(const Place& place, const JsonValue& value) {
  if (value.kind != Kind::kArray) return place.wrong_type(value, "rails", "a list");
  if (value.items.empty()) return place.error(value, "rails", "must not be empty");
  if (value.items.size() > kMaxRailsOfDimension) {
    return place.error(value, "rails",
                       std::to_string(value.items.size()) + " rails, at most " + std::to_string(kMaxRailsOfDimension) +
                           " are possible");
  }
  std::vector<DimensionRail> found;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const Place at{place.source, place.where + "rail " + std::to_string(i + 1) + ": "};
    const DimensionRail next = TRY(rail(at, value.items[i]));
    if (std::ranges::find(found, next.interface, &DimensionRail::interface) != found.end())
      return at.error(value.items[i], "interface", "'" + next.interface + "' is there twice");
    found.push_back(next);
  }
  return found;
}

std::string transports_with_interfaces() {
  std::string names;
  for (const TransportFacts& row : transport_kinds()) {
    if (row.has_interfaces) names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return names;
}

// The value of a field that the object has.
const JsonValue& member(const JsonValue& object, std::string_view key) {
  const auto found = std::ranges::find(object.keys, key);
  CHECK(found != object.keys.end(), "a field that is not there");
  return object.items[static_cast<size_t>(found - object.keys.begin())];
}

// A link says the speed, so nothing else may.
Status settle_link(const Place& place, const JsonValue& object) {
  if (std::ranges::find(object.keys, "link") == object.keys.end()) return {};
  for (const char* other : {"bandwidth_gbps", "rails"}) {
    if (std::ranges::find(object.keys, other) != object.keys.end())
      return place.error(member(object, "link"), "link",
                         std::string("cannot stand beside ") + other + "; please leave one of the two out");
  }
  return {};
}

// Checks the rails against the other fields of the dimension, which is `object`. If all rates are known, their sum is
// the dimension's bandwidth.
Status settle_rails(const Place& place, const JsonValue& object, Dimension& dimension) {
  if (dimension.rails.empty()) return {};
  const JsonValue& value = member(object, "rails");
  if (!dimension.interface.empty())
    return place.error(value, "rails", "cannot stand beside interface; please leave one of the two out");
  if (dimension.transport != TransportKind::kAuto && !facts_of(dimension.transport).has_interfaces) {
    return place.error(value, "rails",
                       "are possible only with a transport that has interfaces (" + transports_with_interfaces() +
                           "), not with " + to_string(dimension.transport));
  }
  uint64_t sum_mbps = 0;
  for (const DimensionRail& rail : dimension.rails) {
    if (rail.bandwidth_mbps == 0) return {};
    sum_mbps += rail.bandwidth_mbps;
  }
  if (sum_mbps > kMostMbps)
    return place.error(value, "rails", "carry " + gbps_text(sum_mbps) + " Gb/s together, more than 1000000");
  if (dimension.bandwidth_mbps == 0) dimension.bandwidth_mbps = sum_mbps;
  if (dimension.bandwidth_mbps == sum_mbps) return {};
  return place.error(member(object, "bandwidth_gbps"), "bandwidth_gbps",
                     "is " + gbps_text(dimension.bandwidth_mbps) + ", but the rails carry " + gbps_text(sum_mbps) +
                         " Gb/s together; please leave it out, or correct one of them");
}

Status set_field(const Place& place, const std::string& key, const JsonValue& value, Dimension& dimension) {
  static constexpr const char* kKeys[] = {
      "size",      "kind",   "bandwidth_gbps",       "latency_ns", "transport",
      "interface", "shared", "in_network_reduction", "rails",      "unknown_network",
      "link"};
  static constexpr uint64_t kMostLatency_ns = 1'000'000'000;
  if (key == "size") {
    dimension.size = static_cast<int32_t>(TRY(whole(place, value, key, 1, std::numeric_limits<int32_t>::max())));
  } else if (key == "kind") {
    dimension.kind = TRY(kind(place, value, key));
  } else if (key == "bandwidth_gbps") {
    dimension.bandwidth_mbps = TRY(bandwidth_mbps(place, value, key));
  } else if (key == "link") {
    dimension.bandwidth_mbps = TRY(link_mbps(place, value, key));
  } else if (key == "latency_ns") {
    dimension.latency_ns = TRY(whole(place, value, key, 0, kMostLatency_ns));
  } else if (key == "transport") {
    dimension.transport = TRY(transport(place, value, key));
  } else if (key == "interface") {
    dimension.interface = TRY(name(place, value, key));
  } else if (key == "rails") {
    dimension.rails = TRY(rails(place, value));
  } else if (key == "shared") {
    TRY(shared(place, value, dimension));
  } else if (key == "in_network_reduction") {
    dimension.in_network_reduction = TRY(boolean(place, value, key));
  } else if (key == "unknown_network") {
    dimension.unknown_network = TRY(boolean(place, value, key));
  } else {
    return unknown_key(place, value, key, kKeys);
  }
  return {};
}

Result<Dimension> read_dimension(const Place& place, const JsonValue& value) {
  if (value.kind != Kind::kObject) return place.wrong_type(value, "", "an object");
  Dimension dimension;
  dimension.size = 0;
  for (size_t i = 0; i < value.keys.size(); ++i) TRY(set_field(place, value.keys[i], value.items[i], dimension));
  if (dimension.size == 0) return place.error(value, "size", "is missing");
  TRY(settle_link(place, value));
  TRY(settle_rails(place, value, dimension));
  if (dimension.in_network_reduction && dimension.kind != DimensionKind::kSwitch) {
    return place.error(value, "in_network_reduction", "is possible only in a dimension of kind switch");
  }
  return dimension;
}

}  // namespace

Result<std::vector<Dimension>> parse_json_dimensions(const std::string& json, const std::string& source) {
  // `trestle topo --json` writes all four. Only the dimensions are read.
  static constexpr const char* kKeys[] = {"dimensions", "host", "hosts", "ranks"};
  const JsonValue root = TRY(parse_json(json, source));
  const Place place{source, ""};
  if (root.kind != Kind::kObject) return place.wrong_type(root, "", "an object with the field dimensions");
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (std::ranges::find(kKeys, root.keys[i]) == std::end(kKeys))
      return unknown_key(place, root.items[i], root.keys[i], kKeys);
    if (root.keys[i] != kKeys[0]) continue;
    const JsonValue& list = root.items[i];
    if (list.kind != Kind::kArray) return place.wrong_type(list, "dimensions", "a list");
    if (list.items.empty()) return place.error(list, "dimensions", "must not be empty");
    for (size_t d = 0; d < list.items.size(); ++d) {
      const Place at{source, "dimension " + std::to_string(d + 1) + ": "};
      dimensions.push_back(TRY(read_dimension(at, list.items[d])));
    }
  }
  if (dimensions.empty()) return place.error(root, "dimensions", "is missing");
  return dimensions;
}

}  // namespace trestle
