/* Ranks that split their communicator again and again, for control_rails_test.sh, until the file exists that is the
 * first argument. Each time the even and the odd ranks add up their numbers; rank 0 prints a line. As long as the file
 * exists that is the second argument, no split begins; rank 0 says so. */
#define _POSIX_C_SOURCE 200809L /* access, nanosleep */
#include <stdio.h>
#include <time.h>
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

static int exists(const char* file) {
  return access(file, F_OK) == 0;
}

static void wait_without(const char* file) {
  const struct timespec moment = {0, 10000000};
  if (!exists(file)) return;
  printf("no split is under way\n");
  fflush(stdout);
  while (exists(file)) nanosleep(&moment, NULL);
}

/* Rank 0 decides for all, when it may. */
static int goes_on(trestleComm_t comm, int rank, const char* enough, const char* hold) {
  int64_t ends = 0;
  if (rank == 0) wait_without(hold);
  if (rank == 0) ends = exists(enough);
  if (complain(trestleBroadcast(&ends, &ends, 1, trestleInt64, 0, comm, NULL), comm)) return 0;
  if (complain(trestleCommSynchronize(comm), comm)) return 0;
  return !ends;
}

int main(int argc, char** argv) {
  const trestleUniqueId none = {{0}};
  trestleComm_t comm = NULL;
  int rank = -1, ranks = -1, bad = 0;
  if (complain(trestleLauncherInfo(&rank, &ranks, NULL), NULL)) return 1;
  if (complain(trestleCommInitRank(&comm, ranks, none, rank), NULL)) return 1;
  while (argc == 3 && bad == 0 && goes_on(comm, rank, argv[1], argv[2])) {
    bad = split(comm, ranks, rank);
    if (rank == 0 && bad == 0) printf("one more split\n");
    fflush(stdout);
  }
  if (bad == 0) bad = complain(trestleCommDestroy(comm), NULL);
  return bad;
}
