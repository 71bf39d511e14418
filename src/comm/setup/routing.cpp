#include "comm/setup/routing.h"

#include <algorithm>
#include <map>

#include "sched/model/segments.h"

namespace trestle {

std::string Carrier::text() const {
  return rails.empty() ? to_string(kind) : std::string(to_string(kind)) + "@" + rails;
}

Routing::Routing(Topology topology, Whereabouts at, uint64_t segment_bytes, const std::vector<NamedRails>& rails)
    : topology_(std::move(topology)), at_(std::move(at)), segment_bytes_(segment_bytes) {
  for (const NamedRails& each : rails.empty() ? named_rails(topology_, {}, 0).value() : rails)
    rails_.push_back(each.name);
  CHECK(rails_.size() == topology_.dimensions.size(), "the rails of other dimensions than the topology's");
  CHECK(at_.host.size() == static_cast<size_t>(topology_.ranks()), "the routing of other ranks than the topology's");
}

TransportKind Routing::transport(int32_t a, int32_t b) const {
  if (pairs_ != nullptr) ++*pairs_;
  if (a == b) return automatic_transport(Reach::kProcess);
  const TransportKind kind = topology_.transport_between(a, b);
  return kind != TransportKind::kAuto ? kind : automatic_transport(at_.apart(a, b));
}

Carrier Routing::carrier(int32_t a, int32_t b) const {
  const TransportKind kind = transport(a, b);
  if (a == b || !facts_of(kind).has_interfaces) return {kind};
  return {kind, rails_[topology_.outermost_difference(a, b)]};
}

RankRoutes Routing::routes(int32_t rank) const {
  RankRoutes result;
  std::map<Carrier, uint16_t> carriers;  // with their numbers in order of appearance
  const int32_t ranks = topology_.ranks();
  result.carrier_of.reserve(static_cast<size_t>(ranks));
  for (int32_t peer = 0; peer < ranks; ++peer) {
    result.carrier_of.push_back(
        carriers.emplace(carrier(rank, peer), static_cast<uint16_t>(carriers.size())).first->second);
  }
  std::vector<uint16_t> place(carriers.size());
  for (const auto& [carrier, number] : carriers) {
    place[number] = static_cast<uint16_t>(result.carriers.size());
    result.carriers.push_back(carrier);
  }
  for (uint16_t& number : result.carrier_of) number = place[number];
  return result;
}

uint64_t Routing::segment_bytes(int32_t a, int32_t b, MemoryPlace place) const {
  if (segment_bytes_ > 0) return segment_bytes_;
  const uint8_t dimension = a == b ? 0 : topology_.outermost_difference(a, b);
  const uint64_t by_transport = facts_of(transport(a, b)).segment_bytes;
  return segment_bytes_at(topology_.dimensions[dimension].bandwidth_mbps, most_segment_bytes(place, by_transport));
}

uint64_t Routing::group_segment_bytes(const std::vector<int32_t>& group, MemoryPlace place) const {
  uint64_t smallest = UINT64_MAX;
  for (size_t i = 0; i + 1 < group.size(); ++i) {
    smallest = std::min(
        {smallest, segment_bytes(group[i], group[i + 1], place), segment_bytes(group[0], group[i + 1], place)});
  }
  return smallest == UINT64_MAX ? SegmentRule{}.bytes : smallest;
}

bool Routing::divides(const std::vector<int32_t>& group) const {
  if (divided_.empty()) return false;
  const auto divided = [this](int32_t a, int32_t b) {
    return std::ranges::find(divided_, carrier(a, b)) != divided_.end();
  };
  for (size_t i = 0; i + 1 < group.size(); ++i) {
    if (divided(group[i], group[i + 1])) return true;
  }
  return false;
}

// Looks at every rank once per dimension, not at every pair. If no transport is configured, ranks that can share memory
// do (base/transport_kinds.cpp asserts it).
bool Routing::all_share_memory() const {
  const bool apart_share = facts_of(automatic_transport(Reach::kAnywhere)).shares_memory;
  int32_t span = 1;
  for (const Dimension& dimension : topology_.dimensions) {
    span *= dimension.size;
    const bool chosen = dimension.transport != TransportKind::kAuto;
    if (chosen ? !facts_of(dimension.transport).shares_memory : !apart_share && has_memory_apart(span)) return false;
  }
  return topology_.ranks() > 1;
}

// Whether two ranks cannot share memory, and their outermost difference is the dimension whose blocks have `span`
// ranks. That is so if a block has ranks of different memory: if two of them differ only in inner dimensions, one of
// the two has other memory than the first rank of any other inner block.
bool Routing::has_memory_apart(int32_t span) const {
  for (size_t rank = 0; rank < at_.memory.size(); ++rank) {
    if (at_.memory[rank] != at_.memory[rank - rank % static_cast<size_t>(span)]) return true;
  }
  return false;
}

}  // namespace trestle
