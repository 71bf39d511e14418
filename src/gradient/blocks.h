// Joins tensors that no plan gains from keeping apart, so that planners have less to try. Pure, any thread.
//
// A tensor of no bytes joins the one before it: no message gets longer or later, and no forward pass waits longer.
// Tensors of no bytes at the beginning have nothing before them. They become one block of no bytes.
// Tensors of no work (biases) stay apart: with the one before it, such a tensor would be ready later.
#pragma once

#include <cstdint>
#include <vector>

#include "gradient/workload.h"

namespace trestle {

struct GradientBlocks {
  std::vector<uint32_t> first;       // tensor of each block; one more at the end: the number of tensors
  std::vector<uint64_t> bytes_upto;  // of all blocks before it; one more at the end
  std::vector<double> forward_upto_s;
  std::vector<double> ready_s;  // from the beginning of the backward pass
  size_t size() const { return ready_s.size(); }
  // Block 0 has no bytes, so it travels in no message.
  bool first_is_empty() const { return bytes_upto[1] == 0; }
  // The tensors of the blocks begin .. end - 1.
  TensorGroup group(size_t begin, size_t end) const { return {first[begin], first[end] - 1}; }
};

GradientBlocks blocks_of(const GradientWorkload& workload);

}  // namespace trestle
