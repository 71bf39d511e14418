/* Halo exchange: a rod is cut over the ranks, heat spreads along it, and before every step neighbours exchange the
 * cells at their borders. The result is compared with the same computation on one rank.
 *
 *   trestle run -n 4 -- ./halo
 */
#include "must.h"

enum { kCells = 50, kSteps = 200, kMostRanks = 16 };

static double start_temperature(int cell) {
  return cell % 17 == 3 ? 100.0 : 1.0 * (cell % 5);
}

/* One step of cells[1..n]; cells[0] and cells[n + 1] are the neighbours'. */
static void spread(double* cells, double* next, int n) {
  for (int i = 1; i <= n; ++i) next[i] = cells[i] + 0.25 * (cells[i - 1] - 2 * cells[i] + cells[i + 1]);
  for (int i = 1; i <= n; ++i) cells[i] = next[i];
}

int main(void) {
  static double cells[kCells + 2], next[kMostRanks * kCells + 2], whole[kMostRanks * kCells + 2];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  EXPECT(nranks <= kMostRanks);

  for (int i = 1; i <= kCells; ++i) cells[i] = start_temperature(rank * kCells + i);
  for (int step = 0; step < kSteps; ++step) {
    MUST(trestleGroupStart(), NULL);
    if (rank > 0) {
      MUST(trestleSend(&cells[1], 1, trestleFloat64, rank - 1, comm, NULL), comm);
      MUST(trestleRecv(&cells[0], 1, trestleFloat64, rank - 1, comm, NULL), comm);
    }
    if (rank < nranks - 1) {
      MUST(trestleSend(&cells[kCells], 1, trestleFloat64, rank + 1, comm, NULL), comm);
      MUST(trestleRecv(&cells[kCells + 1], 1, trestleFloat64, rank + 1, comm, NULL), comm);
    }
    MUST(trestleGroupEnd(), comm);
    MUST(trestleCommSynchronize(comm), comm);
    spread(cells, next, kCells);
  }

  const int all = nranks * kCells;
  for (int i = 1; i <= all; ++i) whole[i] = start_temperature(i);
  for (int step = 0; step < kSteps; ++step) spread(whole, next, all);
  for (int i = 1; i <= kCells; ++i) EXPECT(cells[i] == whole[rank * kCells + i]); /* bit by bit */
  printf("rank %d: its part of the rod is right after %d steps\n", rank, kSteps);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
