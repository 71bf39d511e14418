// What a training step costs: its tensors with their compute times, and its links. Value types, any thread.
//
// Times are seconds, sizes bytes. Tensors are numbered 0 .. L-1 in forward order (0: input side). The backward pass
// produces the gradients L-1 .. 0. The gradient of tensor i is ready when the backward pass has computed it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trestle {

// Where a gradient lies in memory. Gradients that lie together travel from there, others are copied (copies.h).
enum class TensorPlace : uint8_t {
  kApart,
  kBehind,    // directly behind the last gradient before it that has bytes
  kAnywhere,  // where each step says, so it is always copied
};

struct GradientTensor {
  std::string name;
  uint64_t bytes = 0;     // of the gradient; 0 is allowed
  double forward_s = 0;   // compute time of its layer's forward pass
  double backward_s = 0;  // compute time until its gradient is ready, after the one before
  TensorPlace place = TensorPlace::kApart;
  bool operator==(const GradientTensor&) const = default;
};

struct GradientWorkload {
  std::vector<GradientTensor> tensors;  // at least one

  double forward_s() const;
  double backward_s() const;
  uint64_t bytes() const;
  // When each gradient is ready, from the beginning of the forward pass (MG-WFBP, section 3: T_f plus the backward
  // times of the tensors from L-1 down to it).
  std::vector<double> ready_s() const;
};

// The time of one collective: startup_s + per_byte_s * bytes, and 0 for no bytes, because then no message is sent.
struct MessageCost {
  double startup_s = 0;
  double per_byte_s = 0;
  double of(uint64_t bytes) const { return bytes == 0 ? 0 : startup_s + per_byte_s * static_cast<double>(bytes); }
  bool operator==(const MessageCost&) const = default;
};

// One channel: a collective at a time, in order, not interrupted. Compute and communication overlap freely.
struct GradientLink {
  MessageCost all_reduce;
  MessageCost reduce_scatter;  // the halves of the all-reduce
  MessageCost all_gather;
  // By how much a byte that is copied into a buffer, or out of it, lengthens its message. 0: copies are free.
  double copy_per_byte_s = 0;
};

// Consecutive tensors that travel as one message: first .. last. It is ready when `first` is.
struct TensorGroup {
  uint32_t first = 0;
  uint32_t last = 0;
  bool operator==(const TensorGroup&) const = default;
};

}  // namespace trestle
