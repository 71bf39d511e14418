/* When a rank cannot go on it aborts, and the others learn of it instead of waiting forever: their calls return a code
 * and a sentence.
 *
 *   trestle run -n 3 -- ./abort
 */
#include <string.h>

#include "must.h"

enum { kCount = 100000 };

static trestleResult_t add_up(float* data, trestleComm_t comm) {
  const trestleResult_t result = trestleAllReduce(data, data, kCount, trestleFloat32, trestleSum, comm, NULL);
  return result == trestleSuccess ? trestleCommSynchronize(comm) : result;
}

int main(void) {
  static float data[kCount];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  /* A wrong argument is no failure of the communicator: the call is refused, and everything else goes on. */
  EXPECT(trestleBroadcast(data, data, kCount, trestleFloat32, nranks, comm, NULL) == trestleInvalidArgument);
  EXPECT(strstr(trestleGetLastError(comm), "root") != NULL);
  trestleResult_t sticky;
  MUST(trestleCommGetAsyncError(comm, &sticky), NULL);
  EXPECT(sticky == trestleSuccess);

  /* The first sum succeeds at least on the rank that gives up after it. */
  trestleResult_t result = add_up(data, comm);
  if (rank == nranks - 1) {
    MUST(result, comm);
    printf("rank %d finds its input damaged and gives up\n", rank);
    MUST(trestleCommAbort(comm), NULL); /* frees it too */
    return 0;
  }
  if (result == trestleSuccess) result = add_up(data, comm);
  EXPECT(result == trestleAborted);
  printf("rank %d was told: %s\n", rank, trestleGetLastError(comm));

  MUST(trestleCommGetAsyncError(comm, &sticky), NULL);
  EXPECT(sticky == trestleAborted);
  EXPECT(trestleBarrier(comm, NULL) == trestleAborted); /* from here on everything is answered so */
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
