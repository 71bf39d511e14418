/* Ranks that are threads of one process. No launcher, no ids: one call makes all communicators.
 *
 *   ./threads
 */
#include <pthread.h>

#include "must.h"

enum { kRanks = 4, kCount = 1000 };

static trestleComm_t comms[kRanks];

static void* rank_main(void* argument) {
  const int rank = *(const int*)argument;
  int32_t send[kCount], all[kRanks * kCount];
  for (int i = 0; i < kCount; ++i) send[i] = 10000 * rank + i;
  MUST(trestleAllGather(send, all, kCount, trestleInt32, comms[rank], NULL), comms[rank]);
  MUST(trestleCommSynchronize(comms[rank]), comms[rank]);
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < kCount; ++i) EXPECT(all[r * kCount + i] == 10000 * r + i);
  }
  MUST(trestleCommDestroy(comms[rank]), NULL);
  return NULL;
}

int main(void) {
  pthread_t threads[kRanks];
  int numbers[kRanks];
  MUST(trestleCommInitAll(comms, kRanks, NULL), NULL);
  for (int rank = 0; rank < kRanks; ++rank) {
    numbers[rank] = rank;
    EXPECT(pthread_create(&threads[rank], NULL, rank_main, &numbers[rank]) == 0);
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT(pthread_join(threads[rank], NULL) == 0);
  printf("%d threads gathered\n", kRanks);
  return 0;
}
