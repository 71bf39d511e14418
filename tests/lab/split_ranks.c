/* Ranks that split their communicator again and again, for control_rails_test.sh, until the file exists that is the
 * first argument. Each time the even and the odd ranks add up their numbers; rank 0 prints a line. With a second
 * argument they make a new communicator after so many splits. */
#include <stdio.h>
#include <stdlib.h>
#include <trestle/trestle.h>
#include <unistd.h>

static int complain(trestleResult_t result, trestleComm_t comm) {
  if (result != trestleSuccess) fprintf(stderr, "%s: %s\n", trestleGetErrorString(result), trestleGetLastError(comm));
  return result != trestleSuccess;
}

/* Of the ranks with the same parity, counted from 1. */
static int64_t expected(int ranks, int rank) {
  int64_t sum = 0;
  for (int r = rank % 2; r < ranks; r += 2) sum += r + 1;
  return sum;
}

static int split(trestleComm_t comm, int ranks, int rank) {
  trestleComm_t half = NULL;
  int64_t number = rank + 1;
  if (complain(trestleCommSplit(comm, rank % 2, rank, &half, NULL), comm)) return 1;
  if (complain(trestleAllReduce(&number, &number, 1, trestleInt64, trestleSum, half, NULL), half)) return 1;
  if (complain(trestleCommSynchronize(half), half)) return 1;
  if (complain(trestleCommDestroy(half), NULL)) return 1;
  if (number == expected(ranks, rank)) return 0;
  fprintf(stderr, "rank %d: the sum is %d\n", rank, (int)number);
  return 1;
}

/* Rank 0 decides for all. */
static int goes_on(trestleComm_t comm, int rank, const char* enough) {
  int64_t ends = 0;
  if (rank == 0) ends = access(enough, F_OK) == 0;
  if (complain(trestleBroadcast(&ends, &ends, 1, trestleInt64, 0, comm, NULL), comm)) exit(1);
  if (complain(trestleCommSynchronize(comm), comm)) exit(1);
  return !ends;
}

/* One communicator. Whether there are more. */
static int splits(int ranks, int rank, const char* enough, long most) {
  const trestleUniqueId none = {{0}};
  trestleComm_t comm = NULL;
  int more = 1;
  if (complain(trestleCommInitRank(&comm, ranks, none, rank), NULL)) exit(1);
  for (long made = 0; (most == 0 || made < most) && (more = goes_on(comm, rank, enough)); ++made) {
    if (split(comm, ranks, rank)) exit(1);
    if (rank == 0) printf("one more split\n");
    fflush(stdout);
  }
  if (complain(trestleCommDestroy(comm), NULL)) exit(1);
  return more;
}

int main(int argc, char** argv) {
  int rank = -1, ranks = -1;
  if (argc < 2 || complain(trestleLauncherInfo(&rank, &ranks, NULL), NULL)) return 1;
  while (splits(ranks, rank, argv[1], argc > 2 ? strtol(argv[2], NULL, 10) : 0)) {
  }
  return 0;
}
