// all_gather_perf: every rank gets all ranks' blocks.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kAllGather = {
      .kind = trestleCollAllGather,
      .send_in_place = InPlace::kBlock,
      .shape = gathering_shape,
      .factor = factor_blocks,
      .fill_send = fill_own_send,
      .verified = [](const Case& c) { return c.count * static_cast<size_t>(c.nranks); },
      .fill_expected = fill_gathered_expected,
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.all_gather(send, recv, c.count, c.type); },
  };
  return perf_main(argc, argv, kAllGather);
}
