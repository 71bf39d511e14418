// gather_perf: the root gets all ranks' blocks.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kGather = {
      .kind = trestleCollGather,
      .sweeps_ops = false,
      .sweeps_roots = true,
      .in_place = true,
      .send_in_place = InPlace::kBlock,
      .recv_in_place = InPlace::kStart,
      .shape = [](size_t elements, size_t element_bytes, int nranks) -> Shape {
        const size_t count = block_count(elements, element_bytes, nranks);
        return {count, count, count * static_cast<size_t>(nranks)};
      },
      .factor = factor_blocks,
      .fill_send = [](const Case& c, void* send) { fill_copy_send(c, c.count, send); },
      .verified = [](const Case& c) { return c.rank == c.root ? c.count * static_cast<size_t>(c.nranks) : 0; },
      .fill_expected = [](const Case& c, size_t first, size_t count,
                          void* out) { fill_blocks_expected(c, 0, first, count, out); },
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.gather(send, recv, c.count, c.type, c.root); },
  };
  return perf_main(argc, argv, kGather);
}
