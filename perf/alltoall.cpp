// alltoall_perf: block p of rank r's array goes to block r of rank p's.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kAllToAll = {
      .kind = trestleCollAllToAll,
      .shape = [](size_t elements, size_t element_bytes, int nranks) -> Shape {
        const size_t count = block_count(elements, element_bytes, nranks);
        return {count, count * static_cast<size_t>(nranks), count * static_cast<size_t>(nranks)};
      },
      .factor = factor_blocks,
      .fill_send = [](const Case& c, void* send) { fill_copy_send(c, c.count * static_cast<size_t>(c.nranks), send); },
      .verified = [](const Case& c) { return c.count * static_cast<size_t>(c.nranks); },
      .fill_expected =
          [](const Case& c, size_t first, size_t count, void* out) {
            fill_blocks_expected(c, static_cast<size_t>(c.rank) * c.count, first, count, out);
          },
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.all_to_all(send, recv, c.count, c.type); },
  };
  return perf_main(argc, argv, kAllToAll);
}
