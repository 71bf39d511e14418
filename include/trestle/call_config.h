/* Trestle: configuration of single calls. A part of trestle.h, which includes it. */
#ifndef TRESTLE_CALL_CONFIG_H_
#define TRESTLE_CALL_CONFIG_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Configuration of single calls ------------------------------------------------------------------------------- */

#define TRESTLE_CALL_CONFIG_MAGIC 0x7e571e04u

/* How calls are run, where that differs from their communicator. Append-only, as trestleConfig_t. A field that is
 * undefined has the value of the enclosing scope, else of the communicator. All fields except timeoutMs must be the
 * same on all ranks of a call. Ranks that differ get trestleInvalidUsage, with both ranks named. */
typedef struct {
  size_t size;        /* sizeof(trestleCallConfig_t) */
  unsigned magic;     /* TRESTLE_CALL_CONFIG_MAGIC */
  unsigned version;   /* TRESTLE_VERSION_CODE */
  const char* algo;   /* as TRESTLE_ALGO; "": free choice */
  const char* sched;  /* as TRESTLE_SCHED */
  int chunks;         /* as TRESTLE_CHUNKS */
  int64_t timeoutMs;  /* deadline of each operation, milliseconds; <0 undefined, 0 none */
  int deterministic;  /* 1: algorithm and schedule are chosen by nominal link speeds, and not by measured ones or the
                         number of processors. So sums round alike on all machines with the same dimensions */
  int reserved;       /* 0, as in trestleConfig_t */
} trestleCallConfig_t;

#define TRESTLE_CALL_CONFIG_INITIALIZER                                                                                   \
  {                                                                                                                       \
    sizeof(trestleCallConfig_t), TRESTLE_CALL_CONFIG_MAGIC, TRESTLE_VERSION_CODE, NULL, NULL, TRESTLE_CONFIG_UNDEF_INT,   \
        -1, TRESTLE_CONFIG_UNDEF_INT, 0                                                                                   \
  }

/* From here to the matching Pop the config applies to the calling thread's collectives, requests, messages
 * (timeoutMs only) and PredictTime, on any communicator, in and out of groups. In a group, a call has the config that
 * is in force when it is made, not the one at GroupEnd. A request keeps the config of its creation for all its halves
 * and repetitions. Scopes nest. The struct is read before Push returns. A name that does not exist is reported by the
 * call that it applies to. */
TRESTLE_API trestleResult_t trestleCallConfigPush(const trestleCallConfig_t* config);
/* trestleInvalidUsage if nothing was pushed. */
TRESTLE_API trestleResult_t trestleCallConfigPop(void);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_CALL_CONFIG_H_ */
