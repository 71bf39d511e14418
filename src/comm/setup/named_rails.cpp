#include "comm/setup/named_rails.h"

#include <algorithm>

namespace trestle {
namespace {

NamedRails rails_of(const Dimension& dimension, const std::vector<DimensionRails>& said, size_t d) {
  const std::string by_topology = interfaces_text(dimension);
  if (!by_topology.empty()) return {by_topology, by_topology, true};
  const std::string interfaces = interfaces_text(rails_of_dimension(said, d).interfaces);
  if (interfaces.empty()) return {};
  // No interface has a colon in its name.
  return {"TRESTLE_RAILS:" + std::to_string(std::min(d, said.size() - 1) + 1), interfaces, false};
}

}  // namespace

std::vector<NamedRails> named_rails(const Topology& topology, const std::vector<DimensionRails>& said) {
  std::vector<NamedRails> rails;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) rails.push_back(rails_of(topology.dimensions[d], said, d));
  return rails;
}

}  // namespace trestle
