/* A program that starts its ranks itself: it makes an id, and whoever gets it over a channel that can be trusted (here:
 * memory inherited by forked processes) may join.
 *
 *   ./own_launcher
 */
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"

enum { kRanks = 3 };

static void run_rank(int rank, trestleUniqueId id) {
  trestleComm_t comm = NULL;
  int64_t number = rank + 1;
  MUST(trestleCommInitRank(&comm, kRanks, id, rank), NULL);
  MUST(trestleAllReduce(&number, &number, 1, trestleInt64, trestleSum, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  EXPECT(number == 6);
  printf("rank %d: the sum is %d\n", rank, (int)number);
  MUST(trestleCommDestroy(comm), NULL);
}

int main(void) {
  trestleUniqueId id;
  MUST(trestleGetUniqueId(&id), NULL); /* from here on this process waits for the ranks of this id */
  for (int rank = 1; rank < kRanks; ++rank) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
      run_rank(rank, id);
      fflush(stdout);
      _exit(0); /* a child does not run what its parent has registered for its own end */
    }
  }
  run_rank(0, id);
  for (int rank = 1; rank < kRanks; ++rank) {
    int status = -1;
    EXPECT(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return 0;
}
