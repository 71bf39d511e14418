// reduce_perf: the root gets the reduction of all ranks' arrays.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kReduce = {
      .kind = trestleCollReduce,
      .sweeps_ops = true,
      .sweeps_roots = true,
      .shape = whole_shape,
      .factor = factor_one,
      .fill_send = [](const Case& c, void* send) { fill_reduction_send(c, c.count, send); },
      .verified = [](const Case& c) { return c.rank == c.root ? c.count : 0; },
      .fill_expected = fill_reduction_expected,
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.reduce(send, recv, c.count, c.type, c.op, c.root); },
  };
  return perf_main(argc, argv, kReduce);
}
