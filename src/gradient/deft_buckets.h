// What DeFT schedules: the buckets of a training step and the links that carry them. Value types, any thread.
//
// DeFT: "Mitigating Data Dependencies for Flexible Communication Scheduling in Distributed Training" (arXiv
// 2503.16815). All times are whole microseconds, because the knapsacks are solved exactly over sums of times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "gradient/workload.h"

namespace trestle {

// Gradients that travel together. Buckets are numbered from 0 in forward order; the paper counts from 1.
struct DeftBucket {
  uint64_t forward_us = 0;
  uint64_t backward_us = 0;
  uint64_t comm_us = 0;  // on link 0; 0: nothing to send
  bool operator==(const DeftBucket&) const = default;
};

struct DeftLink {
  // Time of a message on this link over its time on link 0 (the paper's mu), in thousandths. Microseconds times
  // thousandths are nanoseconds, so the simulated times are exact.
  uint32_t slowdown_permille = 1000;
  // The time on link 0 of what this link carries in `us` (section 3.3; the paper prints mu * t for t / mu).
  uint64_t carries_us(uint64_t us) const { return us * 1000 / slowdown_permille; }
  bool operator==(const DeftLink&) const = default;
};

inline constexpr uint32_t kGlooSlowdownPermille = 1650;  // section 3.3, gloo beside NCCL

struct DeftSystem {
  std::vector<DeftBucket> buckets;
  std::vector<DeftLink> links;
  bool operator==(const DeftSystem&) const = default;
};

uint64_t forward_us(std::span<const DeftBucket> buckets);
uint64_t backward_us(std::span<const DeftBucket> buckets);
uint64_t comm_us(std::span<const DeftBucket> buckets);

// The time in the backward pass that is left when the gradients of `bucket` are ready. Bucket 0 has none left.
uint64_t room_us(std::span<const DeftBucket> buckets, uint32_t bucket);

// Errors (kInvalidArgument): no bucket, no link, link 0 not at 1000, another one faster, a forward pass without time,
// or a pass or all messages above 100 s (the solver's memory grows with the time).
Status check_deft(const DeftSystem& system);

// Table II, VGG-19 on 16 GPUs. The printed bucket 4 is a misprint: the column sums to 247725 and not to the printed
// 257725, and a line through the other two fully connected buckets predicts 188401.
enum class Vgg19Table : uint8_t { kCorrected, kPrinted };
std::vector<DeftBucket> vgg19_buckets(Vgg19Table table = Vgg19Table::kCorrected);

// `count` equal buckets with these totals. Remainders go to the first ones.
std::vector<DeftBucket> equal_buckets(uint32_t count, const DeftBucket& totals);

// One bucket for each group, in forward order, with times rounded to the nearest microsecond.
std::vector<DeftBucket> deft_buckets(const GradientWorkload& workload, std::span<const TensorGroup> groups,
                                     const MessageCost& cost);

}  // namespace trestle
