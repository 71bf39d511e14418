// all_reduce_perf: every rank gets the reduction of all ranks' arrays.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kAllReduce = {
      .kind = trestleCollAllReduce,
      .sweeps_ops = true,
      .shape = whole_shape,
      .factor = [](int nranks) { return 2.0 * (nranks - 1) / nranks; },
      .fill_send = [](const Case& c, void* send) { fill_reduction_send(c, c.count, send); },
      .verified = [](const Case& c) { return c.count; },
      .fill_expected = fill_reduction_expected,
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.all_reduce(send, recv, c.count, c.type, c.op); },
  };
  return perf_main(argc, argv, kAllReduce);
}
