// The baseline policy: common hierarchical collectives (Horovod's hierarchical all-reduce, Open MPI's HAN). Every chunk
// does a reduce-scatter on the dimensions from the innermost out and an all-gather back in, first in first out.
#include "sched/policy/policies.h"

namespace trestle {

PlannedSchedule plan_baseline(PolicyRequest& request) {
  std::vector<PhaseChoice> phases;
  const auto add = [&](PhaseKind kind, uint8_t dimension) { phases.push_back({dimension, kind, 0}); };
  if (request.reduce_scatter) {
    for (const uint8_t d : request.dimensions) add(PhaseKind::kReduceScatter, d);
  }
  if (request.all_gather) {
    for (size_t i = request.dimensions.size(); i-- > 0;) add(PhaseKind::kAllGather, request.dimensions[i]);
  }
  // Equal chunks differ by less than a quarter, so the algorithms that suit the first one suit all.
  PhaseWalk walk(request.algorithms.model().topology(), request.chunk_bytes.front(), phases);
  for (PhaseChoice& phase : phases) {
    phase = request.algorithms.cheapest(phase.kind, phase.dimension, walk.next(phase));
  }
  std::vector<ChunkSchedule> chunks;
  for (const uint64_t bytes : request.chunk_bytes) chunks.push_back({bytes, phases});
  return order_phases(request.bytes, std::move(chunks), request.algorithms.model(), first_in_first_out,
                      request.in_flight);
}

}  // namespace trestle
