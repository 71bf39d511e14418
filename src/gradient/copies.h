// Which messages of a plan are copied into a buffer and out of it. Pure, any thread.
//
// Tensors whose gradients lie together in memory travel from there. So does a tensor that travels alone, unless each
// step says where it lies (TensorPlace::kAnywhere). Where each tensor is sharded by itself (GradientPlan with different
// groups for the two halves), every message is copied.
#pragma once

#include <cstdint>
#include <vector>

#include "gradient/timeline.h"

namespace trestle {

class MessageCopies {
 public:
  explicit MessageCopies(const GradientWorkload& workload);
  // Whether a group's bytes travel from where they lie.
  bool together(const TensorGroup& group) const;
  // How often a message's bytes are copied. sharded: each tensor by itself (shards_tensors).
  uint32_t of(MessageKind kind, const TensorGroup& group, bool sharded) const;

 private:
  std::vector<uint32_t> first_with_bytes_;  // by tensor: the first one from it on that has bytes
  // By tensor, how many of the tensors with bytes up to it ...
  std::vector<uint32_t> apart_upto_;     // ... are not TensorPlace::kBehind
  std::vector<uint32_t> anywhere_upto_;  // ... are TensorPlace::kAnywhere
};

// Whether the halves of a split plan have groups of their own.
bool shards_tensors(const GradientPlan& plan);

// The cost of the same message if each byte is copied `copies` times.
inline MessageCost with_copies(const MessageCost& cost, double copy_per_byte_s, uint32_t copies) {
  return {cost.startup_s, cost.per_byte_s + copies * copy_per_byte_s};
}

}  // namespace trestle
