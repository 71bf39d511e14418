// sendrecv_perf: every rank sends to rank + 1 and receives from rank - 1. The redop column is a label, as in
// nccl-tests.
#include "perf/driver/collective.h"

using namespace trestle::perf;

namespace {

trestleResult_t run(const Case& c, const void* send, void* recv, trestleComm_t comm, trestleStream_t stream) {
  const int to = (c.rank + 1) % c.nranks, from = (c.rank + c.nranks - 1) % c.nranks;
  trestleResult_t result = trestleGroupStart();
  if (result != trestleSuccess) return result;
  const trestleResult_t sent = trestleSend(send, c.count, c.type, to, comm, stream);
  const trestleResult_t received = trestleRecv(recv, c.count, c.type, from, comm, stream);
  result = trestleGroupEnd();
  return sent != trestleSuccess ? sent : received != trestleSuccess ? received : result;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr Collective kSendRecv = {
      .kind = trestleCollSendRecv,
      .sweeps_ops = true,
      .sweeps_roots = false,
      .in_place = true,
      .send_in_place = InPlace::kStart,
      .recv_in_place = InPlace::kStart,
      .shape = whole_shape,
      .factor = factor_one,
      .fill_send = [](const Case& c, void* send) { fill_copy_send(c, c.count, send); },
      .verified = [](const Case& c) { return c.count; },
      .fill_expected = [](const Case& c, size_t first, size_t count,
                          void* out) { fill_copy_expected(c, (c.rank + c.nranks - 1) % c.nranks, first, count, out); },
      .run = run,
      .verifies_in_place = false,  // sending a buffer while it is received into has no right answer
  };
  return perf_main(argc, argv, kSendRecv);
}
