// scatter_perf: rank r gets block r of the root's array.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kScatter = {
      .kind = trestleCollScatter,
      .sweeps_roots = true,
      .recv_in_place = InPlace::kBlock,
      .shape = scattering_shape,
      .factor = factor_blocks,
      // Only the root fills it: in place, the other ranks' receive block must start as zeros.
      .fill_send =
          [](const Case& c, void* send) {
            fill_copy_send(c, c.rank == c.root ? c.count * static_cast<size_t>(c.nranks) : 0, send);
          },
      .verified = [](const Case& c) { return c.count; },
      .fill_expected =
          [](const Case& c, size_t first, size_t count, void* out) {
            fill_copy_expected(c, c.root, static_cast<size_t>(c.rank) * c.count + first, count, out);
          },
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.scatter(send, recv, c.count, c.type, c.root); },
  };
  return perf_main(argc, argv, kScatter);
}
