/* Trestle: what a communicator has done and what memory it holds. A part of trestle.h, which includes it. */
#ifndef TRESTLE_STATISTICS_H_
#define TRESTLE_STATISTICS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statistics ------------------------------------------------------------------------------------------------------------- */

#define TRESTLE_COMM_STATS_MAGIC 0x7e571e05u
#define TRESTLE_MAX_DIMENSIONS 8
#define TRESTLE_STATS_COLLECTIVES 24 /* room for more than there are */

/* Operations: calls that this rank made, each send and each receive among them, each start of a persistent request, and each half of a
 * decomposable all-reduce (as a reduce-scatter, then as an all-gather). Calls that were refused, and collectives without data (a count
 * of 0; not the barrier), are none. */
typedef struct {
  uint64_t started;    /* when the call returns; in a group, when GroupEnd does */
  uint64_t completed;  /* no later than Synchronize, Wait, Query or Test say so */
  uint64_t failed;     /* that ended with the communicator's failure. started - completed - failed are under way */
  uint64_t express;    /* of those started: small ones, over slots that all ranks share, mostly by the calling thread itself */
  uint64_t bytesGiven; /* of those started: what this rank's send buffers held (all-reduce: count elements; a broadcast's other
                          ranks: none) */
  uint64_t bytesTaken; /* likewise: what this rank's receive buffers were to hold */
} trestleCallStats_t;

/* What went between this rank and the ranks from which it differs in this dimension and in none further out. Bytes are those of the
 * plans, exactly. The express path moves nothing here: its ranks read each other's slots. Nor does a message to oneself. */
typedef struct {
  uint64_t ranks;            /* its size; 0: no such dimension */
  uint64_t bytesSent;        /* of data, taken by the transport */
  uint64_t bytesReceived;    /* of data, in place or reduced */
  uint64_t bytesMapped;      /* of those sent: read by the other process where they lie, in memory of MemAlloc or CommRegister (more
                                than a few KiB at a time); others were copied once more, or never left the process */
  uint64_t messagesSent;     /* a long message travels in segments, which count each; a barrier's hold no bytes */
  uint64_t messagesReceived;
  uint64_t busyNs;           /* how long at least one phase that uses it was in flight, waiting for others included */
} trestleDimensionStats_t;

/* All since the communicator was made (the measurements of TRESTLE_CALIBRATE=full included). Nanoseconds of CLOCK_MONOTONIC.
 * Append-only, as trestleConfig_t: `size` says how much of it the caller knows. */
typedef struct {
  size_t size;           /* sizeof(trestleCommStats_t) */
  unsigned magic;        /* TRESTLE_COMM_STATS_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  uint64_t elapsedNs;
  uint64_t waitNs;       /* how long threads waited for its operations in Synchronize, Wait, Finalize and Destroy (several at the same
                            time: the sum), those that still do included. A thread that waits for a stream or an event waits for the
                            communicator whose operation is the next one there. Calls that run on the express path read no clock */
  uint64_t stagingBytes; /* memory for partial results that it holds now, for calls under way and kept for their like */
  uint64_t stagingPeakBytes;
  trestleCallStats_t total;
  trestleCallStats_t collective[TRESTLE_STATS_COLLECTIVES];  /* by trestleCollective_t */
  trestleDimensionStats_t dimension[TRESTLE_MAX_DIMENSIONS]; /* innermost first */
} trestleCommStats_t;

#define TRESTLE_COMM_STATS_INITIALIZER                                                                                    \
  {                                                                                                                       \
    sizeof(trestleCommStats_t), TRESTLE_COMM_STATS_MAGIC, TRESTLE_VERSION_CODE, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0},           \
        {{0, 0, 0, 0, 0, 0}}, {{0, 0, 0, 0, 0, 0, 0}}                                                                     \
  }

/* Fills in as much of *stats as its size says; start from TRESTLE_COMM_STATS_INITIALIZER. Never waits and takes nothing from the
 * operations: any thread may ask at any time, also of a communicator that failed or was finalized. Each number is right at some moment
 * of the call, two of them need not be of the same moment; started is never less than completed + failed. With TRESTLE_DEBUG=INFO a
 * communicator tells the totals when it is destroyed. */
TRESTLE_API trestleResult_t trestleCommGetStats(trestleComm_t comm, trestleCommStats_t* stats);

typedef enum TRESTLE_ANY_INT {
  trestleMemStaging = 0,    /* for partial results: as stagingBytes */
  trestleMemTransport = 1,  /* of the transports: what this rank shares with its peers (at rank 0: also the slots of small
                               collectives), what it keeps of early messages. Not what peers share, and not the kernel's */
  trestleMemAllocated = 2,  /* of trestleMemAlloc, in the whole process, as rounded up by it */
  trestleMemRegistered = 3, /* the user's, of trestleCommRegister */
  trestleMemTotal = 4       /* staging and transport: what CommDestroy gives back */
} trestleMemStat_t;

/* Writes how many bytes of memory the communicator holds now, as counted where they are allocated; of the library's book-keeping
 * nothing is counted. As trestleCommGetStats for threads and failures. */
TRESTLE_API trestleResult_t trestleCommMemStats(trestleComm_t comm, trestleMemStat_t stat, uint64_t* value);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_STATISTICS_H_ */
