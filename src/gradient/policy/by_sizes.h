// Policies of all-reduces whose groups follow from the tensors' sizes alone. Pure, any thread. `tensors`: at least one.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint32_t kNearbyTensors = 4;
inline constexpr uint64_t kThresholdBytes = uint64_t{25} << 20;  // DDP's default

// Every tensor alone, as soon as it is ready (wait-free backpropagation): MG-WFBP (arXiv 1912.09268), equations 7 and
// 8. Zhang et al., Poseidon, USENIX ATC 2017.
GradientPlan plan_wfbp(uint32_t tensors);

// Every tensor alone, once the backward pass is complete: MG-WFBP, equation 3, T = T_f + T_b + the sum of all costs.
GradientPlan plan_naive(uint32_t tensors);

// All gradients as one message behind the backward pass (SyncEASGD): MG-WFBP, equation 9, T = T_f + T_b + a + b * all
// bytes.
GradientPlan plan_sync(uint32_t tensors);

// So many tensors in a row as one message, counted in the order of the backward pass: DeAR (arXiv 2302.12445), tensor
// fusion, "nearby layers", by default four.
GradientPlan plan_nearby(uint32_t tensors, uint32_t in_a_row);

// Buffers of at most so many bytes, filled in the order of the backward pass, as Horovod and PyTorch's DDP fill them.
// DeAR describes both beside its own tensor fusion.
GradientPlan plan_threshold(const GradientWorkload& workload, uint64_t most_bytes);

enum class FillOrder : uint8_t { kForward, kBackward };
// Such buffers in forward order, filled in either: a tensor joins while the total stays within the buffer. A larger
// tensor travels alone.
std::vector<TensorGroup> filled_groups(const GradientWorkload& workload, uint64_t most_bytes, FillOrder order);

// Groups of one tensor each.
std::vector<TensorGroup> single_groups(uint32_t tensors);

}  // namespace trestle
