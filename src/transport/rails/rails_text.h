// The grammar of TRESTLE_RAILS: which interfaces carry the data of a dimension, and how fast they are.
//
//   rails      dimension { ";" dimension }      innermost first; the last one also counts for all further dimensions
//   dimension  kind | interface { "," interface }
//   kind       a name of TRESTLE_TRANSPORT, "auto" among them: nothing is said about interfaces
//   interface  name [ "@" rate ]                a whole name, as in `ip link`
//   rate       decimal number, "k", "m" or "g"  bit/s, in steps of 1000: 25g, 2.5g, 800m
//
// "eth0,eth1", "eth0@25g,eth1@10g", "shm;eth0,eth1". Spaces around items, names and rates are ignored.
//
// Pure functions, any thread. Failures are kInvalidArgument with a sentence that quotes the wrong item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/transport_kinds.h"

namespace trestle {

struct NamedInterface {
  std::string name;
  uint64_t rate_bps = 0;  // 0: not said
  bool operator==(const NamedInterface&) const = default;
};

// What is said of one dimension: a kind alone, or interfaces alone.
struct DimensionRails {
  TransportKind kind = TransportKind::kAuto;  // kAuto: not said
  std::vector<NamedInterface> interfaces;     // each once; empty: not said
  bool operator==(const DimensionRails&) const = default;
};

// By dimension, innermost first. An empty text says nothing of any dimension. Refused: empty items, an interface twice
// in a dimension, a kind beside other items, names that no interface can have, rates that are none.
Result<std::vector<DimensionRails>> parse_rails(std::string_view text);

// What counts for dimension `d`, from 0.
DimensionRails rails_of_dimension(const std::vector<DimensionRails>& rails, size_t d);

// The text of one dimension's interfaces, which parse_rails reads back; "": none.
std::string interfaces_text(const std::vector<NamedInterface>& interfaces);

// The interfaces of all dimensions that name some, each once, as it is named first; empty: none does.
Result<std::vector<NamedInterface>> interfaces_of_all_dimensions(std::string_view text);

// What all ranks must have said alike: "shm;interfaces". Names and rates may differ between hosts. "": nothing said.
std::string rails_shape(const std::vector<DimensionRails>& rails);

// The limits are those of a topology file: 1m to 1000000g. `item` is what the sentence quotes.
Result<uint64_t> parse_rate_bps(std::string_view text, std::string_view item);
// The shortest text that parse_rate_bps reads back: "25g", "2500m".
std::string rate_text(uint64_t rate_bps);

}  // namespace trestle
