/* Predicted times decide here into how many parts the gradients are cut: from the last layer on, parts of equal size
 * are reduced while the layers before them still compute. More parts start earlier, fewer are cheaper.
 *
 *   trestle run -n 4 -- ./predict_time
 */
#include "must.h"

enum { kCount = 1 << 22, kMostParts = 64 };

int main(void) {
  static float gradients[kCount];
  const double backward_us = 5000;
  double best_us = 0;
  int best = 0, rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  for (int parts = 1; parts <= kMostParts; parts *= 2) {
    double one_us, end_us = 0;
    MUST(trestlePredictTime(comm, trestleCollAllReduce, kCount / parts, trestleFloat32, &one_us), comm);
    EXPECT(one_us > 0);
    for (int p = 1; p <= parts; ++p) {
      const double computed_us = backward_us * p / parts;
      end_us = (end_us > computed_us ? end_us : computed_us) + one_us;
    }
    if (rank == 0)
      printf("%2d parts of %8d elements: %8.1f us each, all done after %8.1f us\n", parts, kCount / parts, one_us,
             end_us);
    if (best == 0 || end_us < best_us) {
      best = parts;
      best_us = end_us;
    }
  }

  /* All ranks predict the same, so all have chosen the same without a word. */
  int32_t least = best, most = best;
  MUST(trestleAllReduce(&least, &least, 1, trestleInt32, trestleMin, comm, NULL), comm);
  MUST(trestleAllReduce(&most, &most, 1, trestleInt32, trestleMax, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  EXPECT(least == best && most == best);

  for (int i = 0; i < kCount; ++i) gradients[i] = 1;
  for (int p = 0; p < best; ++p) {
    float* const part = gradients + (size_t)p * (kCount / best);
    MUST(trestleAllReduce(part, part, kCount / best, trestleFloat32, trestleSum, comm, NULL), comm);
  }
  MUST(trestleCommSynchronize(comm), comm);
  for (int i = 0; i < kCount; ++i) EXPECT(gradients[i] == (float)nranks);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
