// Shared by tests of catalog rows: the plans of a whole group, and all cases that a row serves. Pure functions.
#pragma once

#include <vector>

#include "algorithms/catalog.h"

namespace trestle {

inline constexpr PhaseKind kAllKinds[] = {
    PhaseKind::kReduceScatter, PhaseKind::kAllGather, PhaseKind::kAllReduce, PhaseKind::kReduce, PhaseKind::kBroadcast,
    PhaseKind::kAllToAll,      PhaseKind::kSend,      PhaseKind::kRecv,      PhaseKind::kGather, PhaseKind::kScatter,
    PhaseKind::kAllToAllV,     PhaseKind::kGatherV,   PhaseKind::kScatterV,  PhaseKind::kBarrier};

enum class InPlace { kNo, kYes, kOddRanks };

// The plan of every rank; for kSend and kRecv the plans of the pair.
inline std::vector<Plan> plans_of_group(const Algorithm& row, PhaseKind kind, int32_t group_size, int32_t root,
                                        InPlace in_place) {
  std::vector<Plan> plans;
  for (int32_t me = 0; me < group_size; ++me) {
    PlanRequest request{.kind = kind, .group_size = group_size, .me = me, .root = root};
    if (kind == PhaseKind::kSend || kind == PhaseKind::kRecv)
      request.kind = me == 0 ? PhaseKind::kSend : PhaseKind::kRecv;
    request.in_place = in_place == InPlace::kYes || (in_place == InPlace::kOddRanks && me % 2 == 1);
    plans.push_back(row.build(request));
  }
  return plans;
}

}  // namespace trestle
