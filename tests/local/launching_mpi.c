/* MPI and Trestle in one process, for launching_test.sh. Linked with an MPI library.
 *   first   MPI_Init comes before Trestle's communicator
 *   later   MPI_Init comes after it
 *   never   the program does not use MPI
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <trestle/trestle.h>

static int sum_with_trestle(int rank, int ranks) {
  const trestleUniqueId none = {{0}};
  trestleComm_t comm = NULL;
  int64_t number = rank + 1;
  trestleResult_t result = trestleCommInitRank(&comm, ranks, none, rank);
  if (result == trestleSuccess) result = trestleAllReduce(&number, &number, 1, trestleInt64, trestleSum, comm, NULL);
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  if (result != trestleSuccess) fprintf(stderr, "%s\n", trestleGetLastError(comm));
  if (comm != NULL) trestleCommDestroy(comm);
  return result == trestleSuccess && number == (int64_t)ranks * (ranks + 1) / 2;
}

static int sum_with_mpi(int rank, int ranks) {
  int number = rank + 1, sum = 0;
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return sum == ranks * (ranks + 1) / 2;
}

int main(int argc, char** argv) {
  const char* const mode = argc == 2 ? argv[1] : "";
  const int first = strcmp(mode, "first") == 0, later = strcmp(mode, "later") == 0;
  int rank = -1, ranks = -1, good;
  if (trestleLauncherInfo(&rank, &ranks, NULL) != trestleSuccess) return 1;
  if (first) MPI_Init(&argc, &argv);
  good = sum_with_trestle(rank, ranks);
  if (later) MPI_Init(&argc, &argv);
  if (first || later) {
    good = sum_with_mpi(rank, ranks) && good;
    MPI_Finalize();
  }
  if (good) printf("rank %d of %d: %s\n", rank, ranks, mode);
  return good ? 0 : 1;
}
