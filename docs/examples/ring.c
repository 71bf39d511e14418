/* Messages between neighbours in a ring. A send waits for its receive, so calls that must overlap stand in a group:
 * without it all ranks would send first, and wait forever.
 *
 *   trestle run -n 3 -- ./ring
 */
#include <string.h>

#include "must.h"

enum { kCount = 5000 };

int main(void) {
  static int64_t mine[kCount], received[kCount];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  const int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;

  for (int i = 0; i < kCount; ++i) mine[i] = rank * 100000LL + i;
  for (int step = 0; step < nranks; ++step) {
    MUST(trestleGroupStart(), NULL);
    MUST(trestleSend(mine, kCount, trestleInt64, right, comm, NULL), comm);
    MUST(trestleRecv(received, kCount, trestleInt64, left, comm, NULL), comm);
    MUST(trestleGroupEnd(), comm);
    MUST(trestleCommSynchronize(comm), comm);
    memcpy(mine, received, sizeof mine);
  }
  for (int i = 0; i < kCount; ++i) EXPECT(mine[i] == rank * 100000LL + i); /* once around */
  printf("rank %d: its message came back after %d hops\n", rank, nranks);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
