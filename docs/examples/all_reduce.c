/* The smallest job: every rank has a vector, and all get the sum of all.
 *
 *   trestle run -n 4 -- ./all_reduce
 */
#include "must.h"

enum { kCount = 1 << 16 };

int main(void) {
  static float send[kCount], sum[kCount];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  for (int i = 0; i < kCount; ++i) send[i] = (float)(rank + i % 7);
  MUST(trestleAllReduce(send, sum, kCount, trestleFloat32, trestleSum, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm); /* only now may send be changed and sum be read */

  const int ranks_sum = nranks * (nranks - 1) / 2;
  for (int i = 0; i < kCount; ++i) EXPECT(sum[i] == (float)(ranks_sum + nranks * (i % 7)));
  printf("rank %d of %d has the sum\n", rank, nranks);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
