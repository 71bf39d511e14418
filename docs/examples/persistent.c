/* A persistent all-reduce: planned once, run many times on the same buffers.
 *
 *   trestle run -n 2 -- ./persistent
 */
#include "must.h"

enum { kCount = 4096, kSteps = 50 };

int main(void) {
  static int32_t data[kCount];
  trestleRequest_t request;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  MUST(trestleAllReduceInit(data, data, kCount, trestleInt32, trestleSum, comm, NULL, &request), comm);
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kCount; ++i) data[i] = step + rank;
    MUST(trestleRequestStart(request), comm);
    int done = 0;
    while (!done) MUST(trestleRequestTest(request, &done), comm); /* other work fits in here */
    for (int i = 0; i < kCount; ++i) EXPECT(data[i] == nranks * step + nranks * (nranks - 1) / 2);
  }
  MUST(trestleRequestFree(request), comm);
  printf("rank %d: %d steps of one plan\n", rank, kSteps);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
