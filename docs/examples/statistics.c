/* What a communicator has done: how busy each dimension was, how long the program waited, and what memory is held for
 * it.
 *
 *   trestle run -n 4 -- ./statistics
 */
#include "must.h"

enum { kCount = 1 << 18, kSteps = 10 };

int main(void) {
  static float data[kCount];
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  uint64_t memory;
  int rank, nranks;
  config.dims = "2x2";
  const trestleComm_t comm = join_job(&rank, &nranks, &config);

  for (int step = 0; step < kSteps; ++step) {
    MUST(trestleAllReduce(data, data, kCount, trestleFloat32, trestleSum, comm, NULL), comm);
    MUST(trestleCommSynchronize(comm), comm);
  }
  MUST(trestleCommGetStats(comm, &stats), comm);
  MUST(trestleCommMemStats(comm, trestleMemTotal, &memory), comm);

  EXPECT(stats.total.completed == kSteps && stats.total.failed == 0);
  EXPECT(stats.collective[trestleCollAllReduce].bytesGiven == kSteps * sizeof data);
  EXPECT(stats.elapsedNs > 0);
  if (rank == 0) {
    printf("%llu all-reduces, %.1f MB, waited %.0f %% of the time, %.1f MB held\n",
           (unsigned long long)stats.total.completed, (double)stats.total.bytesGiven / 1e6,
           100.0 * (double)stats.waitNs / (double)stats.elapsedNs, (double)memory / 1e6);
    for (int d = 0; d < TRESTLE_MAX_DIMENSIONS && stats.dimension[d].ranks != 0; ++d) {
      printf("dimension %d of %llu ranks: %.1f MB sent, busy %.0f %%\n", d + 1,
             (unsigned long long)stats.dimension[d].ranks, (double)stats.dimension[d].bytesSent / 1e6,
             100.0 * (double)stats.dimension[d].busyNs / (double)stats.elapsedNs);
    }
  }
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
