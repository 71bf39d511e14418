// gather_perf: the root gets all ranks' blocks.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kGather = {
      .kind = trestleCollGather,
      .sweeps_roots = true,
      .send_in_place = InPlace::kBlock,
      .shape = gathering_shape,
      .factor = factor_blocks,
      .fill_send = fill_own_send,
      .verified = [](const Case& c) { return c.rank == c.root ? c.count * static_cast<size_t>(c.nranks) : 0; },
      .fill_expected = fill_gathered_expected,
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.gather(send, recv, c.count, c.type, c.root); },
  };
  return perf_main(argc, argv, kGather);
}
