/* One thread that holds several ranks: its calls for all of them stand in a group, because the first alone would wait
 * for the others.
 *
 *   ./one_thread
 */
#include "must.h"

enum { kRanks = 3, kCount = 100 };

int main(void) {
  trestleComm_t comms[kRanks];
  static double send[kRanks][kRanks * kCount], recv[kRanks][kCount];
  MUST(trestleCommInitAll(comms, kRanks, NULL), NULL);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kRanks * kCount; ++i) send[rank][i] = rank + 0.25 * i;
  }

  MUST(trestleGroupStart(), NULL);
  for (int rank = 0; rank < kRanks; ++rank) {
    MUST(trestleReduceScatter(send[rank], recv[rank], kCount, trestleFloat64, trestleSum, comms[rank], NULL),
         comms[rank]);
  }
  MUST(trestleGroupEnd(), NULL);
  for (int rank = 0; rank < kRanks; ++rank) MUST(trestleCommSynchronize(comms[rank]), comms[rank]);

  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kCount; ++i) EXPECT(recv[rank][i] == 0 + 1 + 2 + kRanks * 0.25 * (rank * kCount + i));
  }
  MUST(trestleGroupStart(), NULL);
  for (int rank = 0; rank < kRanks; ++rank) MUST(trestleCommDestroy(comms[rank]), NULL);
  MUST(trestleGroupEnd(), NULL);
  printf("one thread reduced for %d ranks\n", kRanks);
  return 0;
}
