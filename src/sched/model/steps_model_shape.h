// PhaseShape: the messages that one representative rank sends in a phase, and the messages that each of them waits for.
// Read from the plan.
//
// Pure, any thread. All members of a group do the same at the same time. So the k-th message that a rank receives is
// assumed to arrive when its own k-th message arrives at its peer. For plans of another kind (trees, groups that do not
// halve evenly) the shape is a pipeline made from the catalog's cost: one message that passes several hops.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/catalog.h"

namespace trestle {

// Bytes [my_begin, my_end) of a message may be sent when the bytes of `message` from its_begin on have arrived. Unit:
// blocks.
struct ShapeDependency {
  uint32_t message = 0;
  uint64_t my_begin = 0;
  uint64_t my_end = 0;
  uint64_t its_begin = 0;
  // Step::after instead: the two share one window (kWindow), or this message waits for all of the other (kEnd).
  enum class Turn : uint8_t { kNone, kWindow, kEnd } turn = Turn::kNone;
};

struct ShapeMessage {
  uint64_t blocks = 1;   // of PhaseShape::blocks, per copy
  uint32_t copies = 1;   // messages of this size that go to different peers at the same time
  uint32_t parts = 1;    // it is really so many messages of equal size, one after the other to the same peer
  uint32_t in_turn = 1;  // merged messages, each of which follows the one before
  bool turns = false;    // the merged messages take turns (Step::after) and wait for no data
  // Consecutive messages that carry the same data. One of them is this rank's.
  uint32_t hops = 1;
  uint64_t reduced_blocks = 0;  // blocks, in all copies, that the receiver reduces
  uint32_t first_dependency = 0;
  uint32_t dependencies = 0;
};

struct PhaseShape {
  uint64_t blocks = 1;                 // the phase's bytes (see AlgorithmCost) are cut into these
  bool converges = false;              // AlgorithmCost::converges
  std::vector<ShapeMessage> messages;  // in the order in which a link prefers them
  std::vector<ShapeDependency> dependencies;
};

// most_messages: long chains are merged until about so many messages are left.
PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages);
// phase_shape() with the sizes of the busiest rank by `cost`: the catalog's cost, or that of unequal blocks.
PhaseShape phase_shape(const Algorithm& algorithm, PhaseKind kind, int32_t group_size, uint32_t most_messages,
                       const AlgorithmCost& cost);

}  // namespace trestle
