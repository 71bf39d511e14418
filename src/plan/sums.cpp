#include "plan/sums.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "plan/cells.h"

namespace trestle {

namespace {

// By index into Plan::sources, for those in this rank's memory; 0 for messages. Steps are taken in the order of the
// plan, in which they would be correct one after the other.
std::vector<uint8_t> local_sums(const Plan& plan) {
  const Cells cells(plan);
  std::vector<uint8_t> held(cells.buffer_cells() + plan.scratch);  // by cell
  std::vector<uint8_t> sums(plan.sources.size());
  for (const Step& step : plan.steps) {
    for (uint32_t s = step.first_source; s < step.first_source + step.sources; ++s) {
      const Source& source = plan.sources[s];
      if (is_peer_source(source)) continue;
      sums[s] = held[cells.of(source.blocks.space, source.blocks.first)];
      for (uint32_t i = 1; i < step.blocks; ++i) {
        CHECK(held[cells.of(source.blocks.space, source.blocks.first + i)] == sums[s],
              "a step moves sums and contributions together");
      }
    }
    if (step.kind == StepKind::kSend) continue;
    const uint8_t made = step.kind == StepKind::kCopy ? sums[step.first_source] : 1;
    for (uint32_t i = 0; i < step.blocks; ++i)
      held[cells.of(step.destination.space, step.destination.first + i)] = made;
  }
  return sums;
}

// Of the messages to a rank, in their order.
std::vector<uint8_t> sent_sums(const Plan& plan, int32_t to) {
  const std::vector<uint8_t> sums = local_sums(plan);
  std::vector<uint8_t> sent;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kSend && step.peer == to) sent.push_back(sums[step.first_source]);
  }
  return sent;
}

}  // namespace

Result<std::vector<uint8_t>> find_sums(const Plan& plan, const PlanOfRank& plan_of) {
  std::vector<uint8_t> sums = local_sums(plan);
  std::map<int32_t, std::vector<uint8_t>> sent;  // by peer
  for (size_t s = 0; s < plan.sources.size(); ++s) {
    const Source& source = plan.sources[s];
    if (!is_peer_source(source)) continue;
    const auto [found, is_new] = sent.try_emplace(source.peer);
    if (is_new) found->second = sent_sums(TRY(plan_of(source.peer)), plan.me);
    CHECK(source.message < found->second.size(), "a message that its sender's plan does not have");
    sums[s] = found->second[source.message];
  }
  return sums;
}

}  // namespace trestle
