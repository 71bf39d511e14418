/* What a data-parallel program does besides summing gradients: the parameters of rank 0 go to everybody, the losses to
 * rank 0, and a barrier keeps the ranks together.
 *
 *   trestle run -n 4 -- ./training_step
 */
#include "must.h"

enum { kParameters = 1000 };

int main(void) {
  static double parameters[kParameters];
  double loss, mean = -1;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  if (rank == 0) {
    for (int i = 0; i < kParameters; ++i) parameters[i] = 0.5 * i;
  }
  MUST(trestleBroadcast(parameters, parameters, kParameters, trestleFloat64, 0, comm, NULL), comm);
  loss = 10.0 + rank;
  /* On the same stream, so after the broadcast. Only rank 0 needs a place for the result. */
  MUST(trestleReduce(&loss, rank == 0 ? &mean : NULL, 1, trestleFloat64, trestleAvg, 0, comm, NULL), comm);
  MUST(trestleBarrier(comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);

  for (int i = 0; i < kParameters; ++i) EXPECT(parameters[i] == 0.5 * i);
  if (rank == 0) {
    EXPECT(mean == 10.0 + (nranks - 1) / 2.0);
    printf("mean loss of %d ranks: %g\n", nranks, mean);
  }
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
