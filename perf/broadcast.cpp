// broadcast_perf: every rank gets the root's array.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

int main(int argc, char** argv) {
  static constexpr Collective kBroadcast = {
      .kind = trestleCollBroadcast,
      .sweeps_roots = true,
      .shape = whole_shape,
      .factor = factor_one,
      // Only the root fills it: in place, the other ranks' send side is their receive side, which must start as zeros.
      .fill_send = [](const Case& c, void* send) { fill_copy_send(c, c.rank == c.root ? c.count : 0, send); },
      .verified = [](const Case& c) { return c.count; },
      .fill_expected = [](const Case& c, size_t first, size_t count,
                          void* out) { fill_copy_expected(c, c.root, first, count, out); },
      .run = [](const Case& c, const void* send, void* recv,
                Calls& calls) { calls.broadcast(send, recv, c.count, c.type, c.root); },
  };
  return perf_main(argc, argv, kBroadcast);
}
