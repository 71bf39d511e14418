#include "comm/setup/named_rails.h"

#include <algorithm>

namespace trestle {
namespace {

// Some rank's group in dimension 0 has ranks of several hosts.
bool innermost_joins_hosts(const Topology& topology, const Whereabouts& at) {
  const auto size = static_cast<size_t>(topology.dimensions[0].size);
  for (size_t r = 0; r < at.host.size(); ++r) {
    if (at.host[r] != at.host[r / size * size]) return true;
  }
  return false;
}

bool within_hosts(const DimensionRails& entry) {
  return entry.interfaces.empty() && entry.kind != TransportKind::kAuto &&
         facts_of(entry.kind).reach != Reach::kAnywhere;
}

Status check_kind(TransportKind said, const Topology& topology, size_t d) {
  const TransportKind has = topology.dimensions[d].transport;
  if (said == TransportKind::kAuto || has == TransportKind::kAuto || said == has) return {};
  return Error{Code::kInvalidArgument, std::string("TRESTLE_RAILS says ") + to_string(said) + " for dimension " +
                                           std::to_string(d + 1) + ", which uses " + to_string(has) +
                                           "; TRESTLE_TRANSPORT chooses transports"};
}

NamedRails rails_of(const Dimension& dimension, const std::vector<DimensionRails>& said, size_t entry) {
  const std::string by_topology = interfaces_text(dimension);
  if (!by_topology.empty()) return {by_topology, by_topology, true};
  const std::string interfaces = interfaces_text(rails_of_dimension(said, entry).interfaces);
  if (interfaces.empty()) return {};
  // No interface has a colon in its name.
  return {"TRESTLE_RAILS:" + std::to_string(std::min(entry, said.size() - 1) + 1), interfaces, false};
}

}  // namespace

size_t first_entry(const Topology& topology, const Whereabouts& at, const std::vector<DimensionRails>& said) {
  size_t first = 0;
  if (topology.dimensions.empty() || !innermost_joins_hosts(topology, at)) return first;
  while (first + 1 < said.size() && within_hosts(said[first])) ++first;
  return first;
}

Result<std::vector<NamedRails>> named_rails(const Topology& topology, const std::vector<DimensionRails>& said,
                                            size_t first) {
  std::vector<NamedRails> rails;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    TRY(check_kind(rails_of_dimension(said, first + d).kind, topology, d));
    rails.push_back(rails_of(topology.dimensions[d], said, first + d));
  }
  return rails;
}

}  // namespace trestle
