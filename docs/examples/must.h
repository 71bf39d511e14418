/* For the examples: a call that has to succeed, a fact that has to hold, and joining the job that a launcher started.
 */
#ifndef TRESTLE_EXAMPLES_MUST_H_
#define TRESTLE_EXAMPLES_MUST_H_

#include <stdio.h>
#include <stdlib.h>
#include <trestle/trestle.h>

/* Ends the program with the library's sentence unless the call succeeded. comm may be NULL. */
#define MUST(call, comm)                                                                                     \
  do {                                                                                                       \
    trestleResult_t must_result = (call);                                                                    \
    if (must_result != trestleSuccess) {                                                                     \
      fprintf(stderr, "%s: %s: %s\n", #call, trestleGetErrorString(must_result), trestleGetLastError(comm)); \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

#define EXPECT(fact)                                                     \
  do {                                                                   \
    if (!(fact)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #fact); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

/* All ranks of the job that `trestle run` (or torchrun, mpirun, srun) started. config may be NULL. */
static inline trestleComm_t join_job(int* rank, int* nranks, const trestleConfig_t* config) {
  const trestleUniqueId launcher = {{0}}; /* zeros: the launcher's rendezvous */
  trestleComm_t comm = NULL;
  MUST(trestleLauncherInfo(rank, nranks, NULL), NULL);
  MUST(trestleCommInitRankConfig(&comm, *nranks, launcher, *rank, config), NULL);
  return comm;
}

#endif
