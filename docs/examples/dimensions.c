/* A communicator that is told its network: two dimensions, how the data is cut into chunks and in which order they are
 * sent. Without all that, dimensions are found out (ranks per host x hosts), and the schedule is what is predicted to
 * be fastest.
 *
 *   trestle run -n 4 -- ./dimensions
 */
#include "must.h"

enum { kCount = 300000 };

static void sum_with(const trestleConfig_t* config, const char* what) {
  static float data[kCount];
  double predicted_us;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, config);

  for (int i = 0; i < kCount; ++i) data[i] = (float)(rank + i % 3);
  MUST(trestlePredictTime(comm, trestleCollAllReduce, kCount, trestleFloat32, &predicted_us), comm);
  MUST(trestleAllReduce(data, data, kCount, trestleFloat32, trestleSum, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  for (int i = 0; i < kCount; ++i) EXPECT(data[i] == (float)(nranks * (nranks - 1) / 2 + nranks * (i % 3)));
  if (rank == 0) printf("%s: predicted %.1f us\n", what, predicted_us);
  MUST(trestleCommDestroy(comm), NULL);
}

int main(void) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  int nranks;
  MUST(trestleLauncherInfo(NULL, &nranks, NULL), NULL);
  EXPECT(nranks == 4);

  sum_with(NULL, "as it is found");
  config.dims = "2x2"; /* as TRESTLE_DIMS; the first is the innermost */
  sum_with(&config, "2x2, the fastest schedule");
  config.sched = "themis";
  config.chunks = 8;
  sum_with(&config, "2x2, eight chunks of Themis");
  config.algo = "ring,rd"; /* rings inside, recursive doubling outside */
  sum_with(&config, "2x2, chosen algorithms");

  /* What cannot be is refused with a sentence. */
  const trestleUniqueId launcher = {{0}};
  trestleComm_t comm = NULL;
  int rank;
  MUST(trestleLauncherInfo(&rank, NULL, NULL), NULL);
  config.dims = "3x2";
  EXPECT(trestleCommInitRankConfig(&comm, nranks, launcher, rank, &config) == trestleInvalidArgument);
  if (rank == 0) printf("3x2: %s\n", trestleGetLastError(NULL));
  return 0;
}
