#include "gradient/policy/us_byte.h"

#include <limits>
#include <string>

#include "gradient/part_channel.h"
#include "gradient/policy/by_sizes.h"

namespace trestle {
namespace {

PartRun best_run(const PartChannel& channel) {
  const PartRun longest = channel.next_run(std::numeric_limits<uint64_t>::max());
  const uint64_t most = channel.parts_of(longest);
  PartRun best = longest;
  double least = std::numeric_limits<double>::infinity();
  for (uint64_t parts = 1;; parts *= 2) {
    const PartRun run = parts < most ? channel.next_run(parts) : longest;
    PartChannel after = channel;
    after.send(run);
    const double end = after.forward_end_alone_s();
    if (end < least) {
      least = end;
      best = run;
    }
    if (parts >= most) return best;
  }
}

}  // namespace

Result<GradientPlan> plan_us_byte(const GradientWorkload& workload, const MessageCost& cost, uint64_t part_bytes,
                                  double copy_per_byte_s) {
  PartChannel channel(workload, cost, part_bytes, copy_per_byte_s);
  if (channel.parts_left() > kMostTriedParts) {
    return Error{Code::kInvalidArgument, "parts of " + std::to_string(part_bytes) + " bytes are " +
                                             std::to_string(channel.parts_left()) + "; at most " +
                                             std::to_string(kMostTriedParts) + " are tried"};
  }
  GradientPlan plan;
  plan.shape = StepShape::kByPriority;
  plan.groups = single_groups(static_cast<uint32_t>(workload.tensors.size()));
  plan.part_bytes = part_bytes;
  while (!channel.all_sent()) {
    channel.wait();
    plan.runs.push_back(best_run(channel));
    channel.send(plan.runs.back());
  }
  return plan;
}

}  // namespace trestle
