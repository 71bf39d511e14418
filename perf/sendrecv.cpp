// sendrecv_perf: every rank sends to rank + 1 and receives from rank - 1. The redop column is a label, as in
// nccl-tests.
#include "perf/backend/calls.h"
#include "perf/driver/collective.h"

using namespace trestle::perf;

namespace {

void run(const Case& c, const void* send, void* recv, Calls& calls) {
  calls.group_start();
  calls.send(send, c.count, c.type, (c.rank + 1) % c.nranks);
  calls.recv(recv, c.count, c.type, (c.rank + c.nranks - 1) % c.nranks);
  calls.group_end();
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr Collective kSendRecv = {
      .kind = trestleCollSendRecv,
      .sweeps_ops = true,
      .shape = whole_shape,
      .factor = factor_one,
      .fill_send = fill_own_send,
      .verified = [](const Case& c) { return c.count; },
      .fill_expected = [](const Case& c, size_t first, size_t count,
                          void* out) { fill_copy_expected(c, (c.rank + c.nranks - 1) % c.nranks, first, count, out); },
      .run = run,
      .verifies_in_place = false,  // sending a buffer while it is received into has no right answer
  };
  return perf_main(argc, argv, kSendRecv);
}
