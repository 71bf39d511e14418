/* Every wait has a deadline. Here rank 0 calls a collective that the others do not; its deadline passes, and all hear
 * the same story.
 *
 *   trestle run -n 2 -- ./deadline
 */
#include "must.h"

int main(void) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  float data[1000] = {0};
  int rank, nranks;
  config.timeoutMs = 2000; /* the default is in docs/environment.md: TRESTLE_TIMEOUT */
  config.commName = "example";
  const trestleComm_t comm = join_job(&rank, &nranks, &config);

  trestleResult_t state = trestleSuccess;
  if (rank == 0) {
    state = trestleAllReduce(data, data, 1000, trestleFloat32, trestleSum, comm, NULL);
    if (state == trestleSuccess) state = trestleCommSynchronize(comm);
    EXPECT(state == trestleTimeout);
  } else {
    /* A rank that is busy with something else asks now and then. */
    while (state == trestleSuccess) MUST(trestleCommGetAsyncError(comm, &state), NULL);
    EXPECT(state == trestleTimeout || state == trestleRemoteError);
  }
  printf("rank %d: %s: %s\n", rank, trestleGetErrorString(state), trestleGetLastError(comm));
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
