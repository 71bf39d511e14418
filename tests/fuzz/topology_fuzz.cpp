// Topology files: any text gives either a topology that can be written and read again, or an error with a sentence.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "topology/topology.h"

using namespace trestle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<Topology> parsed = parse_topology(text, "file");
  if (!parsed.ok()) {
    CHECK(parsed.error().code == Code::kInvalidArgument, "a malformed topology file has a code of its own");
    CHECK(parsed.error().message.find("file") != std::string::npos, "an error does not name the file");
    return 0;
  }
  const Topology& topology = parsed.value();
  CHECK(topology.ranks() >= 1 && !topology.dimensions.empty(), "a topology without ranks was accepted");
  CHECK(topology.dimensions.size() <= static_cast<size_t>(kMaxDimensions), "too many dimensions were accepted");
  const Result<Topology> again = parse_topology(to_json(topology), "again");
  CHECK(again.ok(), "a written topology cannot be read");
  CHECK(again.value().dimensions == topology.dimensions, "writing and reading changed the dimensions");
  CHECK(hash(again.value()) == hash(topology), "equal topologies have different hashes");
  CHECK(!to_text(topology).empty(), "a topology has no table");
  return 0;
}
