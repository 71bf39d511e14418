/* Trestle: a communicator's statistics, and the memory that it holds. A part of trestle.h, which includes it. */
#ifndef TRESTLE_STATISTICS_H_
#define TRESTLE_STATISTICS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statistics -------------------------------------------------------------------------------------------------- */

#define TRESTLE_COMM_STATS_MAGIC 0x7e571e05u
#define TRESTLE_MAX_DIMENSIONS 8
#define TRESTLE_STATS_COLLECTIVES 24 /* room for more than there are */

/* Operations: calls that this rank made. Each send, each receive, each start of a persistent request, and each half
 * of a decomposable all-reduce (as a reduce-scatter, then as an all-gather) is one. Calls that were refused do not
 * count, nor do collectives without data (a count of 0; a barrier does count). */
typedef struct {
  uint64_t started;    /* when the call returns; in a group, when GroupEnd does */
  uint64_t completed;  /* counted before Synchronize, Wait, Query or Test report it */
  uint64_t failed;     /* ended by the communicator's failure. started - completed - failed are under way */
  uint64_t express;    /* of those started: small ones, over slots that all ranks share, mostly on the calling thread */
  uint64_t bytesGiven; /* of those started: bytes in this rank's send buffers (all-reduce: count elements; broadcast
                          at other ranks than the root: none) */
  uint64_t bytesTaken; /* of those started: bytes for this rank's receive buffers */
} trestleCallStats_t;

/* Traffic between this rank and the ranks from which it differs in this dimension and in none further out. Bytes are
 * exactly those of the plans. The express path adds nothing here: its ranks read each other's slots. Nor does a
 * message to oneself. */
typedef struct {
  uint64_t ranks;            /* size of the dimension; 0: no such dimension */
  uint64_t bytesSent;        /* of data, taken by the transport */
  uint64_t bytesReceived;    /* of data, in place or reduced */
  uint64_t bytesMapped;      /* of those sent: the other process read them in place, in memory of MemAlloc or
                                CommRegister (more than a few KiB at a time), or its device read them in memory of this
                                rank's device, or where that copied them to in host memory. Others were copied once more,
                                or never left the process */
  uint64_t messagesSent;     /* a long message travels in segments, each of which counts; a barrier's have no bytes */
  uint64_t messagesReceived;
  uint64_t busyNs;           /* time with at least one phase in flight on it, including waits for other ranks */
} trestleDimensionStats_t;

/* Everything since the communicator was created (including the measurements of TRESTLE_CALIBRATE=full). Nanoseconds
 * of CLOCK_MONOTONIC. Append-only, as trestleConfig_t: `size` says how much of it the caller knows. */
typedef struct {
  size_t size;           /* sizeof(trestleCommStats_t) */
  unsigned magic;        /* TRESTLE_COMM_STATS_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  uint64_t elapsedNs;
  uint64_t waitNs;       /* time that threads waited for its operations in Synchronize, Wait, Finalize and Destroy, as a
                            sum over threads, including waits that still last. A thread that waits for a stream or an
                            event waits for the communicator of the next operation there. Calls that run on the express
                            path read no clock */
  uint64_t stagingBytes; /* memory for partial results that it holds now, for calls under way and kept for later ones */
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

/* Fills in as much of *stats as its size says; start from TRESTLE_COMM_STATS_INITIALIZER. Never waits and does not
 * slow the operations. Any thread may call it at any time, also for a communicator that failed or was finalized.
 * Each number is right at some moment of the call; two of them need not be of the same moment. started is never less
 * than completed + failed. With TRESTLE_DEBUG=INFO a communicator logs the totals when it is destroyed. */
TRESTLE_API trestleResult_t trestleCommGetStats(trestleComm_t comm, trestleCommStats_t* stats);

typedef enum TRESTLE_ANY_INT {
  trestleMemStaging = 0,    /* for partial results: as stagingBytes */
  trestleMemTransport = 1,  /* of the transports: memory that this rank shares with its peers (at rank 0: also the slots
                               of small collectives), and early messages that it keeps. Not memory that peers share, and
                               not the kernel's */
  trestleMemAllocated = 2,  /* of trestleMemAlloc, in the whole process, as rounded up by it */
  trestleMemRegistered = 3, /* the user's, of trestleCommRegister */
  trestleMemTotal = 4       /* staging and transport: what CommDestroy frees */
} trestleMemStat_t;

/* Writes how many bytes of memory the communicator holds now, as counted where they are allocated. The library's
 * book-keeping is not counted. Threads and failures: as for trestleCommGetStats. */
TRESTLE_API trestleResult_t trestleCommMemStats(trestleComm_t comm, trestleMemStat_t stat, uint64_t* value);

#ifdef __cplusplus
}
#endif

#include "trestle/rails.h" /* trestleCommGetRailStats */

#endif /* TRESTLE_STATISTICS_H_ */
