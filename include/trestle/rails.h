/* Trestle: how the rails between this rank and its peers fare. A part of trestle.h, which includes it. */
#ifndef TRESTLE_RAILS_H_
#define TRESTLE_RAILS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statistics of rails ----------------------------------------------------------------------------------------- */

/* A rail is a network interface of this rank, as far as it carries messages to a peer (docs/rails.md). Two ranks may
 * have several in common. */
typedef enum TRESTLE_ANY_INT {
  trestleRailConnecting = 0, /* no connection so far */
  trestleRailUp = 1,
  trestleRailEnding = 2,     /* the connection is lost. The two ranks are about to tell each other what has arrived */
  trestleRailDown = 3        /* lost, or no connection could be made. Where ranks have several rails it is tried again */
} trestleRailState_t;

#define TRESTLE_RAIL_STATS_MAGIC 0x7e571e08u
#define TRESTLE_RAIL_NAME_BYTES 48 /* with the closing 0, as all texts here. Longer texts are cut */
#define TRESTLE_RAIL_WHY_BYTES 128
#define TRESTLE_RAIL_CHANGES 8

/* A change of a rail's state. This struct will not grow. */
typedef struct {
  uint64_t atNs;            /* of CLOCK_MONOTONIC */
  trestleRailState_t state;
  char why[TRESTLE_RAIL_WHY_BYTES]; /* of trestleRailEnding and trestleRailDown, else "" */
} trestleRailChange_t;

/* One rail to one peer, since the communicator was created. Bytes are those of messages, as the rail carried them: those
 * that were sent again count again, and so do the 16 KiB that measure an idle rail.
 *
 * If two ranks have only one rail in common, nothing is acknowledged or sent again. Then bytesAcknowledged, bytesQueued,
 * goodput and framesAgain are 0. */
typedef struct {
  int peer;                   /* its rank */
  int rails;                  /* that the two ranks have in common */
  trestleRailState_t state;
  int sharePermille;          /* of the bytes sent to the peer over all its rails */
  uint64_t stateNs;           /* CLOCK_MONOTONIC when it got into this state */
  uint64_t bytesSent;
  uint64_t bytesAcknowledged; /* of those sent: known to have arrived. Never more than bytesSent */
  uint64_t bytesReceived;
  uint64_t bytesQueued;       /* sent, and neither known to have arrived nor lost; 128 for each header without data */
  uint64_t goodput;           /* bytes per second, as measured by what is acknowledged; 0: unknown, or not up */
  uint64_t framesAgain;       /* parts of messages that did not arrive over this rail and went over another one */
  uint64_t connections;       /* made so far */
  uint64_t losses;            /* of those: lost. Those that ended with the communicator do not count */
  char name[TRESTLE_RAIL_NAME_BYTES]; /* of this rank's interface. Where the kernel has chosen it: its address */
  char why[TRESTLE_RAIL_WHY_BYTES];   /* it is ending or down, else "" */
  int changes;                        /* in `change`, 1 to TRESTLE_RAIL_CHANGES */
  trestleRailChange_t change[TRESTLE_RAIL_CHANGES]; /* the last ones, oldest first. Attempts that fail again are none */
} trestleRailStats_t;

/* Append-only, as trestleConfig_t. So is trestleRailStats_t: rowSize is the size that the caller's rows have. Of each row
 * only so much is written, and the next one begins behind it. */
typedef struct {
  size_t size;              /* sizeof(trestleCommRailStats_t) */
  unsigned magic;           /* TRESTLE_RAIL_STATS_MAGIC */
  unsigned version;         /* TRESTLE_VERSION_CODE */
  size_t rowSize;           /* sizeof(trestleRailStats_t) */
  trestleRailStats_t* rows; /* the caller's array; NULL only if capacity is 0 */
  int capacity;             /* its rows */
  int count;                /* written: how many rails there are. The first min(count, capacity) are in rows */
  uint64_t nowNs;           /* written: CLOCK_MONOTONIC, to compare with stateNs and atNs */
} trestleCommRailStats_t;

#define TRESTLE_RAIL_STATS_INITIALIZER                                                                                    \
  { sizeof(trestleCommRailStats_t), TRESTLE_RAIL_STATS_MAGIC, TRESTLE_VERSION_CODE, sizeof(trestleRailStats_t), NULL, 0,  \
        0, 0                                                                                                              \
  }

/* Writes one row for each rail, ordered by peer, and for each peer in the order that both ranks have. Start from
 * TRESTLE_RAIL_STATS_INITIALIZER, which asks for the number alone. The next call may find more rows: a peer gets its
 * rows with the first message to it or the first connection from it. Peers that are reached through memory have none,
 * but for ranks with devices whose messages go over two paths at once (TRESTLE_HOST_PATH): these have a row for
 * "peer memory" and one for "host memory", of what this rank has sent.
 *
 * Any thread may call it at any time, also for a communicator that was finalized or failed. After a failure all rails
 * are down, and their changes tell which were down before. It never waits for the network and does not slow the
 * operations. Each number is right at some moment of the call; two of them need not be of the same moment. With
 * TRESTLE_DEBUG=INFO a communicator logs a line for each rail when it is destroyed, if some peer has several. */
TRESTLE_API trestleResult_t trestleCommGetRailStats(trestleComm_t comm, trestleCommRailStats_t* stats);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_RAILS_H_ */
