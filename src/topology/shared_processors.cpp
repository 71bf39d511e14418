// Adjusts a topology if the ranks of a machine outnumber its processors.
#include <algorithm>
#include <bit>
#include <map>

#include "topology/topology.h"
#include "topology/whereabouts.h"

namespace trestle {
namespace {

// A step needs a peer that is not running, so it waits while other ranks use the processor. This is a round figure that
// gives the smallest all-reduce the right order of magnitude. With 4 ranks per core, 8 bytes took 220 to 320 us over
// shm and tcp, and hardly more in seven steps (rings) than in one. The model predicts 89 us for one step and 529 us for
// seven.
constexpr uint64_t kTurn_ns = 20'000;

struct Machine {
  std::vector<uint64_t> processors;  // of all its ranks together, because each may be bound to its own
  uint64_t ranks = 0;

  uint64_t count() const {
    uint64_t count = 0;
    for (const uint64_t word : processors) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }
};

// The machine with the most ranks per processor. If every rank has a processor: a machine with one rank and one
// processor.
Machine fullest(const std::vector<RankPlace>& places) {
  std::map<std::string, Machine> machines;
  for (const RankPlace& place : places) {
    Machine& machine = machines[place.machine];
    ++machine.ranks;
    machine.processors.resize(std::max(machine.processors.size(), place.processors.size()));
    for (size_t i = 0; i < place.processors.size(); ++i) machine.processors[i] |= place.processors[i];
  }
  Machine worst{{1}, 1};
  for (const auto& [name, machine] : machines) {
    if (machine.count() == 0) continue;
    if (machine.ranks * worst.count() > worst.ranks * machine.count()) worst = machine;
  }
  return worst;
}

}  // namespace

void share_processors(const std::vector<RankPlace>& places, Topology& topology) {
  const Machine machine = fullest(places);
  const uint64_t processors = machine.count();
  if (machine.ranks <= processors) return;
  bool shares = false;
  const Whereabouts at = whereabouts(places);
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    if (dimension.bandwidth_mbps != 0 || !dimension.shared_resource.empty()) continue;
    shares = true;
    const TransportFacts& facts = facts_of(dimension.transport);
    dimension.shared_resource = "processors";
    dimension.unknown_network |= facts.has_interfaces && all_apart(level_of(topology, d), at);
    dimension.shared_ps_per_byte = facts.processor_ps_per_byte * machine.ranks / processors;
    if (dimension.latency_ns != kNominalLatency) continue;
    dimension.latency_ns = facts.latency_ns + kTurn_ns * (machine.ranks - processors) / processors;
  }
  if (!shares) return;
  topology.reason += "; " + std::to_string(machine.ranks) + " ranks share " + std::to_string(processors) +
                     (processors == 1 ? " processor" : " processors") + " of a machine";
}

int32_t ranks_per_processor(const std::vector<RankPlace>& places) {
  const Machine machine = fullest(places);
  const uint64_t processors = std::max<uint64_t>(machine.count(), 1);
  return static_cast<int32_t>((machine.ranks + processors - 1) / processors);
}

}  // namespace trestle
