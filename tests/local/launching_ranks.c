/* Ranks of any launcher, for launching_test.sh. Each mode meets without a unique id.
 *   several   makes communicators of several sizes, one after another
 *   exit      calls _exit as soon as its communicator is destroyed, so no handler of the process runs
 *   missing   the last rank makes no communicator and stays until the launcher ends it. The others must report it at
 *             their deadline (exit status 3). Then the launcher ends the job
 */
#define _POSIX_C_SOURCE 200809L /* pause */
#include <stdio.h>
#include <string.h>
#include <trestle/trestle.h>
#include <unistd.h>

enum { kBad = 1, kRefused = 3 };

static int complain(trestleResult_t result, trestleComm_t comm) {
  if (result != trestleSuccess) fprintf(stderr, "%s: %s\n", trestleGetErrorString(result), trestleGetLastError(comm));
  return result != trestleSuccess;
}

/* 0, or the exit status of the process. */
static int sum_over(int ranks, int rank) {
  const trestleUniqueId none = {{0}};
  trestleComm_t comm = NULL;
  int64_t number = rank + 1;
  if (complain(trestleCommInitRank(&comm, ranks, none, rank), NULL)) return kRefused;
  if (complain(trestleAllReduce(&number, &number, 1, trestleInt64, trestleSum, comm, NULL), comm)) return kBad;
  if (complain(trestleCommSynchronize(comm), comm)) return kBad;
  if (complain(trestleCommDestroy(comm), NULL)) return kBad;
  if (number == (int64_t)ranks * (ranks + 1) / 2) return 0;
  fprintf(stderr, "rank %d of %d: the sum is %d\n", rank, ranks, (int)number);
  return kBad;
}

int main(int argc, char** argv) {
  const char* const mode = argc == 2 ? argv[1] : "";
  int rank = -1, ranks = -1, bad = 0;
  if (complain(trestleLauncherInfo(&rank, &ranks, NULL), NULL)) return kBad;
  while (strcmp(mode, "missing") == 0 && rank == ranks - 1) pause();
  bad = sum_over(ranks, rank);
  if (strcmp(mode, "several") == 0) {
    if (bad == 0 && rank < 2 && ranks > 2) bad = sum_over(2, rank);
    if (bad == 0) bad = sum_over(1, 0);
    if (bad == 0) bad = sum_over(ranks, rank);
  }
  if (bad == 0) printf("rank %d of %d: %s\n", rank, ranks, mode);
  fflush(stdout);
  if (strcmp(mode, "exit") == 0) _exit(bad);
  return bad;
}
