#include "sched/select/by_dimension.h"

#include <algorithm>

namespace trestle {
namespace {

// One phase of this kind on each dimension first .. end-1, innermost first.
std::vector<PhaseChoice> on_each(PhaseKind kind, size_t first, size_t end) {
  std::vector<PhaseChoice> phases;
  for (size_t d = first; d < end; ++d) phases.push_back({static_cast<uint8_t>(d), kind, 0});
  return phases;
}

std::vector<PhaseChoice> inwards(std::vector<PhaseChoice> phases) {
  std::reverse(phases.begin(), phases.end());
  return phases;
}

std::vector<PhaseChoice> all_reduce(size_t split, size_t dimensions) {
  std::vector<PhaseChoice> phases = on_each(PhaseKind::kReduceScatter, 0, split);
  for (const PhaseChoice& phase : on_each(PhaseKind::kAllReduce, split, dimensions)) phases.push_back(phase);
  for (const PhaseChoice& phase : inwards(on_each(PhaseKind::kAllGather, 0, split))) phases.push_back(phase);
  return phases;
}

}  // namespace

std::vector<std::vector<PhaseChoice>> ways_by_dimension(Collective collective, size_t dimensions) {
  if (dimensions < 2) return {};
  switch (collective) {
    case Collective::kBroadcast:
      return {inwards(on_each(PhaseKind::kBroadcast, 0, dimensions))};
    case Collective::kReduce:
      return {on_each(PhaseKind::kReduce, 0, dimensions)};
    case Collective::kAllToAll:
      return {on_each(PhaseKind::kAllToAll, 0, dimensions)};
    case Collective::kBarrier:
      return {all_reduce(0, dimensions)};
    case Collective::kAllReduce: {
      std::vector<std::vector<PhaseChoice>> ways;
      for (size_t split = dimensions; split-- > 0;) ways.push_back(all_reduce(split, dimensions));
      return ways;
    }
    default:
      return {};
  }
}

}  // namespace trestle
