// PhaseShape: the messages that one representative rank sends in a phase and what each waits for, read off the plan.
//
// Pure, any thread. The members of a group do the same at the same time, so what arrives at a rank as the k-th message
// is taken to arrive when its own k-th message arrives at its peer. Where a plan is not of that kind (trees, groups
// that do not halve evenly) the shape is a pipeline from the catalog's cost: one message that passes several hops.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/catalog.h"

namespace trestle {

// Bytes [my_begin, my_end) of a message follow the same bytes, shifted, of `message`, once they have arrived. In
// blocks.
struct ShapeDependency {
  uint32_t message = 0;
  uint64_t my_begin = 0;
  uint64_t my_end = 0;
  uint64_t its_begin = 0;
};

struct ShapeMessage {
  uint64_t blocks = 1;          // of PhaseShape::blocks, in each copy
  uint32_t copies = 1;          // messages of this size to different peers at the same time
  uint32_t in_turn = 1;         // messages drawn together, each of which follows the one before
  uint32_t hops = 1;            // messages one after the other that carry the same data, of which one is this rank's
  uint64_t reduced_blocks = 0;  // of those, in all copies, that the receiver adds up
  uint32_t first_dependency = 0;
  uint32_t dependencies = 0;
};

struct PhaseShape {
  uint64_t blocks = 1;                 // into which the phase's bytes (see AlgorithmCost) are cut
  std::vector<ShapeMessage> messages;  // in the order in which a link prefers them
  std::vector<ShapeDependency> dependencies;
};

// most_messages: long chains are drawn together until there are about so many.
PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages);
// The same messages, as long as the busiest rank's are by `cost`: of the catalog, or of blocks of unequal lengths.
PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages,
                       const AlgorithmCost& cost);

}  // namespace trestle
