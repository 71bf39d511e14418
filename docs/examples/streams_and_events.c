/* Two streams: operations on one are in order, those on different ones overlap, and an event makes one stream wait for
 * another. Every rank makes the calls on a communicator in the same order, whatever their streams.
 *
 *   trestle run -n 2 -- ./streams_and_events
 */
#include "must.h"

enum { kCount = 200000 };

int main(void) {
  static int32_t gradients[kCount], statistics[kCount], total[kCount];
  trestleStream_t first, second;
  trestleEvent_t reduced;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  MUST(trestleStreamCreate(&first), NULL);
  MUST(trestleStreamCreate(&second), NULL);
  MUST(trestleEventCreate(&reduced), NULL);
  for (int i = 0; i < kCount; ++i) {
    gradients[i] = rank + 1;
    statistics[i] = i;
  }

  MUST(trestleAllReduce(gradients, gradients, kCount, trestleInt32, trestleSum, comm, first), comm);
  MUST(trestleEventRecord(reduced, first), NULL);
  MUST(trestleAllReduce(statistics, statistics, kCount, trestleInt32, trestleMax, comm, second),
       comm); /* waits for nothing */
  MUST(trestleStreamWaitEvent(second, reduced), NULL);
  MUST(trestleAllReduce(gradients, total, kCount, trestleInt32, trestleSum, comm, second),
       comm); /* reads what `first` wrote */

  /* The processor is free for other work here; now and then a look drives what is under way. */
  trestleResult_t state;
  while ((state = trestleStreamQuery(second)) == trestleInProgress) continue;
  MUST(state, comm);
  MUST(trestleEventQuery(reduced), NULL); /* it must be complete: `second` has passed it */

  const int sum = nranks * (nranks + 1) / 2;
  for (int i = 0; i < kCount; ++i) EXPECT(gradients[i] == sum && statistics[i] == i && total[i] == nranks * sum);
  printf("rank %d: both streams are done\n", rank);
  MUST(trestleEventDestroy(reduced), NULL);
  MUST(trestleStreamDestroy(second), NULL);
  MUST(trestleStreamDestroy(first), NULL);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
