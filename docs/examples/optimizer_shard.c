/* The decomposable all-reduce: after its first half each rank holds the sum of its shard, runs the optimizer on that
 * shard alone, and the second half hands the updated parameters to everybody. So no rank keeps the optimizer's state
 * for all parameters.
 *
 *   trestle run -n 4 -- ./optimizer_shard
 */
#include "must.h"

enum { kCount = 10007, kRanges = 16 };

int main(void) {
  static float gradients[kCount], updated[kCount];
  trestleRange_t shard[kRanges];
  trestleRequest_t request;
  int rank, nranks, ranges = kRanges;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  /* Which elements are mine: the same for every call of this count and type. */
  MUST(trestleShardRanges(comm, rank, kCount, trestleFloat32, shard, &ranges), comm);
  EXPECT(ranges <= kRanges);

  for (int i = 0; i < kCount; ++i) gradients[i] = (float)(i % 32);
  MUST(trestleAllReduceStart(gradients, updated, kCount, trestleFloat32, trestleAvg, comm, NULL, &request), comm);
  /* Other work of the backward pass may run here. */
  MUST(trestleRequestWait(request), comm);
  for (int r = 0; r < ranges; ++r) {
    for (size_t i = shard[r].offset; i < shard[r].offset + shard[r].count; ++i) {
      updated[i] = 100.0f - 0.5f * updated[i]; /* parameter minus rate times mean gradient */
    }
  }
  MUST(trestleAllReduceFinish(request, NULL), comm);
  MUST(trestleRequestWait(request), comm);
  MUST(trestleRequestFree(request), comm);

  for (int i = 0; i < kCount; ++i) EXPECT(updated[i] == 100.0f - 0.5f * (float)(i % 32));
  printf("rank %d updated %d range(s) and has all parameters\n", rank, ranges);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
