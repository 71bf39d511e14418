// reduce_scatter_perf: rank r gets block r of the reduction of all ranks' arrays.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kReduceScatter = {
      .kind = trestleCollReduceScatter,
      .sweeps_ops = true,
      .recv_in_place = InPlace::kBlock,
      .shape = scattering_shape,
      .factor = factor_blocks,
      .fill_send = [](const Case& c,
                      void* send) { fill_reduction_send(c, c.count * static_cast<size_t>(c.nranks), send); },
      .verified = [](const Case& c) { return c.count; },
      .fill_expected =
          [](const Case& c, size_t first, size_t count, void* out) {
            fill_reduction_expected(c, static_cast<size_t>(c.rank) * c.count + first, count, out);
          },
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.reduce_scatter(send, recv, c.count, c.type, c.op); },
  };
  return perf_main(argc, argv, kReduceScatter);
}
