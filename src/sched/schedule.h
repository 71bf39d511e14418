// Schedule: for every chunk of an operation its size and its order of phases, and for every dimension the agreed order
// in which its phases start and how many may be in flight. A value that is a pure function of inputs that all ranks
// share. It is hashed, printed, compared and simulated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "topology/topology.h"

namespace trestle {

struct PhaseChoice {
  uint8_t dimension = kFlat;  // index into Topology::dimensions, or kFlat
  PhaseKind kind = PhaseKind::kAllReduce;
  uint16_t algorithm = 0;  // index into algorithms()
  bool operator==(const PhaseChoice&) const = default;
};

struct ChunkSchedule {
  uint64_t bytes = 0;               // part of the operation's bytes; these sum to Schedule::bytes
  std::vector<PhaseChoice> phases;  // in order; stage s = phases[s]
  bool operator==(const ChunkSchedule&) const = default;
};

struct PhaseId {
  uint32_t chunk = 0;
  uint32_t stage = 0;
  bool operator==(const PhaseId&) const = default;
};

struct DimensionOrder {
  uint8_t dimension = kFlat;
  uint32_t in_flight = 1;      // phases that may be started and not complete at the same time
  std::vector<PhaseId> order;  // every phase of this dimension, in start order
  bool operator==(const DimensionOrder&) const = default;
};

struct Schedule {
  // Resident per rank before the operation (AR, RS, reduce, all-to-all) or after it (AG, broadcast).
  uint64_t bytes = 0;
  std::vector<ChunkSchedule> chunks;
  std::vector<DimensionOrder> orders;  // one per dimension that has phases
  bool operator==(const Schedule&) const = default;
};

// The dimensions (bit mask) in which only ranks with the root's coordinate take part in phase `stage`: for a broadcast
// those that the data has not reached yet, for a reduce those that are already reduced. None for other kinds. The
// group's root is the member with the root's coordinate.
uint32_t rooted_dimensions(const std::vector<PhaseChoice>& phases, size_t stage);

// As in TRESTLE_ALGO.
std::string_view algorithm_name(const PhaseChoice& phase);

uint64_t hash(const Schedule& schedule);
std::string to_string(const Schedule& schedule, const Topology& topology);

}  // namespace trestle
