#include "base/files/text_file.h"
#include "topology/internal.h"
#include "topology/topology.h"

namespace trestle {

Result<Topology> parse_topology(const std::string& json, const std::string& source) {
  Topology topology;
  topology.dimensions = TRY(parse_json_dimensions(json, source));
  topology.reason = "topology file " + source;
  TRY(drop_single(topology, source));
  return topology;
}

Result<std::string> read_topology_text(const std::string& path) {
  return read_text_file("topology file", path, 1);
}

Result<Topology> read_topology_file(const std::string& path) {
  return parse_topology(TRY(read_topology_text(path)), path);
}

}  // namespace trestle
