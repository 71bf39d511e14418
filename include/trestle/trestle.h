/* Trestle: collective communication between ranks, over every link that they have. The whole core C API (C99).
 *
 * Conventions
 * - NCCL's shape and argument order: a call of NCCL with `nccl` read as `trestle` means the same here, except that
 *   streams are trestleStream_t, and buffers are host memory or memory of the communicator's device (trestle/cuda.h).
 * - Every function returns a trestleResult_t unless said otherwise. On failure nothing was changed, and
 *   trestleGetLastError(comm) returns a sentence that explains it to a person. Output arguments are written only on
 *   success.
 * - A communicator's first failure is sticky: every later call on it returns that code and that sentence until it is
 *   destroyed or aborted. Wrong arguments are not such failures: the call is refused, and nothing changes.
 * - Counts are elements of the data type, sizes are bytes, times are microseconds, unless a name says otherwise.
 * - Block r of a buffer belongs to rank r. `count` means what it means in NCCL. All-reduce, broadcast, reduce:
 *   elements of the whole buffer. Reduce-scatter, scatter: of one received block. All-gather, gather: of one sent
 *   block. All-to-all: of the block for one peer.
 * - In place means: send == recv (all-reduce, broadcast, reduce at the root, all-to-all), recv == send + rank*count
 *   (reduce-scatter, scatter at the root), send == recv + rank*count (all-gather, gather at the root). With blocks
 *   of unequal lengths the block's displacement replaces rank*count. Any other overlap of what a call sends and what
 *   it receives is trestleInvalidArgument.
 * - V-variants: counts and displacements are arrays of one element per rank, in elements of the type, read before the
 *   call returns. Displacements NULL: the blocks lie one after the other. Counts of 0 are always allowed, and the
 *   displacement of such a block is ignored. Receive blocks must not overlap; memory between them is not touched.
 * - Collectives are asynchronous: appended to an in-order stream, they read and write their buffers until the stream
 *   has passed them. trestleStreamSynchronize or trestleCommSynchronize wait. A call may be complete when it returns.
 * - Any thread may call any function. Calls on one communicator are serialised in the order of the calls, which must
 *   be the same on all ranks. A handle must not be used while or after it is destroyed.
 * - The library owns communicators, streams, events, requests. The caller owns buffers and destroys what it created.
 * - fork(): to the library the child is a program that has just begun. It may create everything anew, and may end in
 *   any way, also by exit(), even while the parent's communicators live and other threads of the parent are in
 *   calls. Every call on an inherited communicator, stream, event or request, including Destroy and Abort, is
 *   trestleInvalidUsage and does not affect the parent's. Inherited objects need not be freed. Variables are read
 *   anew. Scopes of CallConfigPush stay in force. A group of the parent does not: its GroupEnd is
 *   trestleInvalidUsage in the child. Children may use a unique id of the parent while the parent lives. Memory of
 *   trestleMemAlloc is shared with the parent; registered memory is as the program has mapped it. No other shared
 *   memory of the library is mapped in the child. Of the library's descriptors only the log's is open in the child,
 *   so a dead rank is noticed although its child lives. A child of vfork(), _Fork() or clone(), and one that is
 *   forked inside a reduction function, must exec or _exit.
 * - Sums have one order: the same communicator, count, type, algorithm and schedule give the same bits on every rank
 *   and in every run. 8- and 16-bit floats are added in float32 inside one reduction step.
 * - Everything is computed in the default floating-point environment: to nearest, subnormals kept, nothing traps. So
 *   are the program's functions that the library calls. After a call the thread has its own again, with its flags.
 */
#ifndef TRESTLE_TRESTLE_H_
#define TRESTLE_TRESTLE_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRESTLE_MAJOR 0
#define TRESTLE_MINOR 1
#define TRESTLE_PATCH 0
#define TRESTLE_VERSION_CODE (TRESTLE_MAJOR * 10000 + TRESTLE_MINOR * 100 + TRESTLE_PATCH)

/* A caller's mistake may put any number into these types. In C++ reading it is undefined unless they can hold it. */
#ifdef __cplusplus
#define TRESTLE_ANY_INT : int
#else
#define TRESTLE_ANY_INT
#endif
#define TRESTLE_API __attribute__((visibility("default")))

/* ---- Results ----------------------------------------------------------------------------------------------------- */

typedef enum TRESTLE_ANY_INT {
  trestleSuccess = 0,
  trestleUnhandledDeviceError = 1, /* the driver of a device reported an error */
  trestleSystemError = 2,     /* an operating-system call failed, or there is no memory, here or on another rank */
  trestleInternalError = 3,   /* a bug of the library */
  trestleInvalidArgument = 4, /* a bad value */
  trestleInvalidUsage = 5,    /* a good value at the wrong moment, or in a wrong combination */
  trestleRemoteError = 6,     /* another rank died, left, or reported a failure */
  trestleInProgress = 7,      /* not a failure: ask again */
  trestleTimeout = 8,         /* a deadline passed */
  trestleAborted = 9,         /* the communicator was aborted */
  trestleReductionFailed = 10, /* a user-defined reduction failed or threw */
  trestleNumResults = 11
} trestleResult_t;

/* Writes TRESTLE_VERSION_CODE of the library that runs. */
TRESTLE_API trestleResult_t trestleGetVersion(int* version);
/* A short constant text for a code; never NULL. */
TRESTLE_API const char* trestleGetErrorString(trestleResult_t result);

typedef struct trestleComm* trestleComm_t;
typedef struct trestleStream* trestleStream_t;
typedef struct trestleEvent* trestleEvent_t;
typedef struct trestleRequest* trestleRequest_t;

/* The sentence of the communicator's sticky failure, else of the calling thread's last failed call; comm may be
 * NULL. Never NULL, "" if there was none. Valid until the thread's next call into the library. */
TRESTLE_API const char* trestleGetLastError(trestleComm_t comm);

/* ---- Types and operators ----------------------------------------------------------------------------------------- */

typedef enum TRESTLE_ANY_INT {
  trestleInt8 = 0,
  trestleUint8 = 1,
  trestleInt32 = 2,
  trestleUint32 = 3,
  trestleInt64 = 4,
  trestleUint64 = 5,
  trestleFloat16 = 6,
  trestleFloat32 = 7,
  trestleFloat64 = 8,
  trestleBfloat16 = 9,
  trestleFloat8e4m3 = 10,
  trestleFloat8e5m2 = 11,
  trestleNumTypes = 12
} trestleDataType_t;

/* Integer sums and products wrap around. max and min of floats: a NaN wins. avg: the sum is divided by the number n of
 * ranks after the last addition (integers: truncated towards zero). But 8- and 16-bit floats are multiplied by 1/n before
 * they are added, both in float32: where their sum would overflow, their average does not. */
typedef enum TRESTLE_ANY_INT {
  trestleSum = 0,
  trestleProd = 1,
  trestleMax = 2,
  trestleMin = 3,
  trestleAvg = 4,
  trestleNumOps = 5,            /* the numbers of user-defined operators begin here */
  trestleMaxRedOp = 0x7fffffff
} trestleRedOp_t;

typedef enum TRESTLE_ANY_INT {
  trestleCollAllReduce = 0,
  trestleCollReduceScatter = 1,
  trestleCollAllGather = 2,
  trestleCollBroadcast = 3,
  trestleCollReduce = 4,
  trestleCollAllToAll = 5,
  trestleCollSendRecv = 6,
  trestleCollBarrier = 7,
  trestleCollGather = 8,
  trestleCollScatter = 9,
  trestleCollAllGatherV = 10,
  trestleCollReduceScatterV = 11,
  trestleCollAllToAllV = 12,
  trestleCollGatherV = 13,
  trestleCollScatterV = 14
} trestleCollective_t;

/* ---- Communicators ----------------------------------------------------------------------------------------------- */

#define TRESTLE_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[TRESTLE_UNIQUE_ID_BYTES];
} trestleUniqueId;

#define TRESTLE_CONFIG_UNDEF_INT INT_MIN
#define TRESTLE_CONFIG_MAGIC 0x7e571e01u

/* Configuration of one communicator. Append-only: `size` says how much of it the caller knows. Start from
 * TRESTLE_CONFIG_INITIALIZER. Undefined fields have the values of the TRESTLE_ variables. Strings are copied.
 * Every variable that can differ between the communicators of a process has a field; `size` lets later ones get theirs.
 * TRESTLE_DEBUG, _DEBUG_SUBSYS, _DEBUG_FILE, _PROGRESS_THREAD(S) and _CONF_FILE have none: a process has one log, one
 * set of helper threads and one such file. The fields from hostId on accept and refuse the same values as their
 * variables. Undefined is NULL or "", <0 (int64_t), TRESTLE_CONFIG_UNDEF_INT (int). */
typedef struct {
  size_t size;           /* sizeof(trestleConfig_t) */
  unsigned magic;        /* TRESTLE_CONFIG_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  int blocking;          /* 1 (default): CommInitRank, CommSplit and CommFinalize return when they are done.
                            0: they return trestleInProgress at once, see trestleCommGetAsyncError */
  int64_t timeoutMs;     /* deadline of every wait, milliseconds; <0 undefined, 0 none. Finding out which rank is
                            to blame may take as long again, at most 4 s */
  const char* commName;  /* for messages; NULL: derived from the id */
  const char* dims;      /* as TRESTLE_DIMS, e.g. "4x2" */
  const char* transport; /* as TRESTLE_TRANSPORT */
  const char* algo;      /* as TRESTLE_ALGO */
  const char* sched;     /* as TRESTLE_SCHED */
  int chunks;            /* as TRESTLE_CHUNKS */
  const char* topoFile;  /* as TRESTLE_TOPO_FILE */
  const char* hostId;         /* as TRESTLE_HOSTID */
  const char* intra;          /* as TRESTLE_INTRA */
  const char* calibrate;      /* as TRESTLE_CALIBRATE */
  const char* calibrationDir; /* as TRESTLE_CALIBRATION_DIR */
  const char* secret;         /* as TRESTLE_SECRET. secret, commId and store apply only to ids of zeros: for an id of
                                 trestleGetUniqueId the process's variables count */
  const char* commId;         /* as TRESTLE_COMM_ID */
  const char* store;          /* as TRESTLE_STORE */
  const char* socketIfname;   /* as TRESTLE_SOCKET_IFNAME */
  const char* socketFamily;   /* as TRESTLE_SOCKET_FAMILY */
  const char* portRange;      /* as TRESTLE_PORT_RANGE */
  const char* congestion;     /* as TRESTLE_CONGESTION */
  int64_t heartbeatMs;        /* as TRESTLE_HEARTBEAT, milliseconds */
  int64_t segmentBytes;       /* as TRESTLE_SEGMENT */
  int64_t expressBytes;       /* as TRESTLE_EXPRESS_BYTES */
  int64_t eagerBytes;         /* as TRESTLE_EAGER */
  int64_t stagingBytes;       /* as TRESTLE_STAGING */
  int inflight;               /* as TRESTLE_INFLIGHT */
  int express;                /* as TRESTLE_EXPRESS: 0 or 1 */
  int shmMap;                 /* as TRESTLE_SHM_MAP: 0 or 1 */
  int checkPlans;             /* as TRESTLE_CHECK_PLANS: 0 or 1 */
  int check;                  /* as TRESTLE_CHECK: 0 or 1 */
  int spinUs;                 /* as TRESTLE_SPIN, microseconds; -1: auto */
  const char* rails;          /* as TRESTLE_RAILS */
  int64_t railTimeoutMs;      /* as TRESTLE_RAIL_TIMEOUT, milliseconds */
  int device;                 /* as TRESTLE_DEVICE: a CUDA device (trestle/cuda.h); -1: none */
  int reserved;               /* 0. `size` does not tell a later field here from the padding of an older program */
  int peerAccess;             /* as TRESTLE_PEER_ACCESS: 0 or 1 (trestle/cuda.h) */
  int reserved2;              /* 0, as `reserved` */
  int64_t deviceExpressBytes; /* as TRESTLE_DEVICE_EXPRESS_BYTES */
  const char* hostPath;       /* as TRESTLE_HOST_PATH */
  const char* deviceExpressProcesses; /* as TRESTLE_DEVICE_EXPRESS_PROCESSES */
  const char* job;            /* as TRESTLE_JOB; like commId only for ids of zeros */
} trestleConfig_t;

#define TRESTLE_CONFIG_INITIALIZER                                                                                        \
  { sizeof(trestleConfig_t), TRESTLE_CONFIG_MAGIC, TRESTLE_VERSION_CODE, TRESTLE_CONFIG_UNDEF_INT, -1, NULL, NULL, NULL,  \
    NULL, NULL, TRESTLE_CONFIG_UNDEF_INT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,         \
    -1, -1, -1, -1, -1, TRESTLE_CONFIG_UNDEF_INT, TRESTLE_CONFIG_UNDEF_INT, TRESTLE_CONFIG_UNDEF_INT,                     \
    TRESTLE_CONFIG_UNDEF_INT, TRESTLE_CONFIG_UNDEF_INT, TRESTLE_CONFIG_UNDEF_INT, NULL, -1, TRESTLE_CONFIG_UNDEF_INT, 0,  \
    TRESTLE_CONFIG_UNDEF_INT, 0, -1, NULL, NULL, NULL }

/* Makes an id and starts to listen for its ranks in this process. The id holds an address and a secret: send it over
 * a channel you trust. With TRESTLE_COMM_ID or a launcher's variables (see docs/launching.md) ids need not be
 * exchanged: see trestleCommInitRank. */
TRESTLE_API trestleResult_t trestleGetUniqueId(trestleUniqueId* id);

/* Joins as `rank` of `nranks`. Returns when all have joined, or the deadline has passed.
 * An id of 128 zero bytes means the rendezvous that the environment names. It is the first of these that exists:
 * TRESTLE_COMM_ID; TRESTLE_STORE; MASTER_ADDR and MASTER_PORT; an address that the processes of mpirun or srun
 * exchange through their launcher (PMI, PMIx), for which each of them must create a communicator of more than one
 * rank; what the launcher's other variables say (docs/launching.md). One rank without an id (nranks 1) needs none. */
TRESTLE_API trestleResult_t trestleCommInitRank(trestleComm_t* comm, int nranks, trestleUniqueId id, int rank);
/* CommInitRank with a configuration; config may be NULL. */
TRESTLE_API trestleResult_t trestleCommInitRankConfig(trestleComm_t* comm, int nranks, trestleUniqueId id, int rank,
                                                      const trestleConfig_t* config);
/* All ranks in this process: comms[0..nranks-1]. devlist[r], unless it is NULL: rank r's device, as config.device. */
TRESTLE_API trestleResult_t trestleCommInitAll(trestleComm_t* comms, int nranks, const int* devlist);
TRESTLE_API trestleResult_t trestleCommInitAllConfig(trestleComm_t* comms, int nranks, const trestleConfig_t* config);
#define TRESTLE_SPLIT_NOCOLOR (-1)
/* Collective over comm: the ranks of one color (0 or more) become a new communicator, ranked by (key, rank in comm).
 * With TRESTLE_SPLIT_NOCOLOR a rank only takes part, and *newcomm becomes NULL. Any other negative color, a wrong
 * config, and newcomm NULL are refused on all ranks, with a sentence that names the rank.
 *
 * comm stays as it was and may be used meanwhile. Calls on it and splits of it must be in the same order on all
 * ranks. No id is exchanged and none is needed: the ranks meet over comm, and only ranks of comm can join.
 *
 * config NULL or undefined fields: as comm's. That includes blocking: a split of a communicator that was created
 * with blocking = 0 returns trestleInProgress unless config says 1. It does not include the dimensions of comm
 * (dims, topoFile, lists per dimension of transport or algo), because they do not fit: the dimensions are chosen
 * from the hosts of the new ranks. Set config->dims if they matter.
 *
 * A rank that dies, does not call within the deadline or stands still before the new communicator is made fails
 * comm, with a sentence that names it by its number in comm. Inside a group *newcomm is NULL until GroupEnd, as with
 * CommInitRank. A thread that holds several ranks of comm needs a group. */
TRESTLE_API trestleResult_t trestleCommSplit(trestleComm_t comm, int color, int key, trestleComm_t* newcomm,
                                             const trestleConfig_t* config);
/* Rank, number of ranks and rank within the host, as the launcher's variables say (trestle run, torchrun, mpirun,
 * srun); 0 of 1 if the process was started alone. trestleInvalidUsage, with the variable's name, if one cannot be
 * read or only some of them are set. Any pointer may be NULL. */
TRESTLE_API trestleResult_t trestleLauncherInfo(int* rank, int* nranks, int* localRank);

/* Collective: waits for everything that this rank has enqueued on the communicator and then, until the deadline, for
 * the Finalize of the others. Afterwards only Destroy, Abort and queries are allowed. A thread with several ranks
 * finalizes them in one group: outside of a group the first call would wait in vain. */
TRESTLE_API trestleResult_t trestleCommFinalize(trestleComm_t comm);
/* Waits for this rank's work, says goodbye (at most a second) and frees. Never waits for other ranks' Destroy. A
 * process that exits without it says goodbye too. It does not report work that failed: call Synchronize first if
 * that matters. In a group the handle is dead at once; the rest happens at GroupEnd, even if the group is refused. */
TRESTLE_API trestleResult_t trestleCommDestroy(trestleComm_t comm);
/* Ends all work of the communicator with trestleAborted, tells the other ranks, and frees it, in bounded time. Any
 * thread may call it, also while another thread waits in a call on the communicator. That call returns
 * trestleAborted; it must not touch comm afterwards. */
TRESTLE_API trestleResult_t trestleCommAbort(trestleComm_t comm);
/* Writes trestleSuccess, or the code of the sticky failure. Never blocks.
 *
 * With config.blocking = 0, CommInitRankConfig, CommSplit and CommFinalize (in a group: its GroupEnd) return
 * trestleInProgress, which is no failure, with *comm filled in. A thread of the library then does the work. Until
 * that has ended, this function writes trestleInProgress. Then it writes trestleSuccess, or the code that the
 * blocking call would have returned; in that case GetLastError(comm) has the sentence, and only Destroy or Abort may
 * follow.
 *
 * Until then every other call on the communicator is trestleInvalidUsage, except this one, GetLastError, Abort and
 * Destroy. Abort and Destroy end the work in bounded time. The other ranks see an abort, or, if this rank had not
 * come to the rendezvous yet, a rank that never came. A rank with TRESTLE_SPLIT_NOCOLOR has no handle to ask: it
 * asks the parent, which takes calls all the while. CommInitAll always waits. */
TRESTLE_API trestleResult_t trestleCommGetAsyncError(trestleComm_t comm, trestleResult_t* asyncError);
/* Waits until everything enqueued on the communicator, on any stream, is done. */
TRESTLE_API trestleResult_t trestleCommSynchronize(trestleComm_t comm);
TRESTLE_API trestleResult_t trestleCommCount(trestleComm_t comm, int* count);
TRESTLE_API trestleResult_t trestleCommUserRank(trestleComm_t comm, int* rank);

/* ---- Streams and events on the host ------------------------------------------------------------------------------ */

/* An in-order queue of operations, of any communicators of this process. NULL in a call = the communicator's own
 * stream.
 *
 * A failed operation leaves its failure on the stream. It stays until StreamSynchronize or StreamQuery has reported
 * it and nothing is enqueued behind it. Until then every event recorded there carries it, and calls on the stream
 * are refused with it. Operations of any communicator that are behind it already do not run, because their input may
 * be missing: each fails its communicator, and the sentence tells all its ranks what had failed. (Operations of one
 * group are not behind each other.) After a failure, synchronize the streams that other communicators are to use. */
TRESTLE_API trestleResult_t trestleStreamCreate(trestleStream_t* stream);
/* Waits for the work on it, then frees it. */
TRESTLE_API trestleResult_t trestleStreamDestroy(trestleStream_t stream);
/* Waits for what was enqueued on it before this call. trestleSuccess, or the first failure that it has not reported. */
TRESTLE_API trestleResult_t trestleStreamSynchronize(trestleStream_t stream);
/* trestleSuccess: idle; trestleInProgress: busy; otherwise idle, and the first failure on it that was not reported
 * yet. Drives progress. */
TRESTLE_API trestleResult_t trestleStreamQuery(trestleStream_t stream);
/* Makes everything that is enqueued on the stream later wait for the event (as last recorded before this call). The
 * stream takes over an event's failure, as if an operation there had failed. */
TRESTLE_API trestleResult_t trestleStreamWaitEvent(trestleStream_t stream, trestleEvent_t event);
TRESTLE_API trestleResult_t trestleEventCreate(trestleEvent_t* event);
TRESTLE_API trestleResult_t trestleEventDestroy(trestleEvent_t event);
/* The event completes when everything enqueued on the stream before this call is done or has failed. It then has the
 * first failure of that work which the stream had not reported, and keeps it until it is recorded again. */
TRESTLE_API trestleResult_t trestleEventRecord(trestleEvent_t event, trestleStream_t stream);
/* Waits for the event (as last recorded before this call). trestleSuccess: it was never recorded, or all its work
 * succeeded. Otherwise its failure, at every call. */
TRESTLE_API trestleResult_t trestleEventSynchronize(trestleEvent_t event);
/* EventSynchronize without waiting: trestleInProgress if the event is not complete yet. Drives progress. */
TRESTLE_API trestleResult_t trestleEventQuery(trestleEvent_t event);
typedef void (*trestleNotifyFunction_t)(void* context, trestleResult_t result);
/* Makes the library call `function` once when the event (as last recorded before this call) is complete, with what
 * EventSynchronize would return. For an event that was never recorded or is complete, that happens at once. So no
 * thread needs to wait: helper threads of the library drive the work, whatever TRESTLE_PROGRESS_THREAD says. One of
 * them calls the functions one at a time, perhaps before EventNotify returns. It blocks all signals, and may be bound
 * to a NUMA node; threads that the function starts inherit both. The event may be recorded again or destroyed
 * meanwhile, and an abort completes it too. A forked child, and a process from its exit on, call nothing.
 *
 * Two calls of EventNotify are two calls of the function. It must return soon, because other work that no thread
 * waits for may stand still meanwhile. It may call only trestleGetVersion, trestleGetErrorString and
 * trestleGetLastError (NULL: the sentence of `result`); other functions return trestleInvalidUsage to it. An
 * exception that it throws fails the communicator that had used the event's stream last. */
TRESTLE_API trestleResult_t trestleEventNotify(trestleEvent_t event, trestleNotifyFunction_t function, void* context);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

TRESTLE_API trestleResult_t trestleAllReduce(const void* send, void* recv, size_t count, trestleDataType_t type,
                                             trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream);
TRESTLE_API trestleResult_t trestleReduceScatter(const void* send, void* recv, size_t recvcount, trestleDataType_t type,
                                                 trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream);
TRESTLE_API trestleResult_t trestleAllGather(const void* send, void* recv, size_t sendcount, trestleDataType_t type,
                                             trestleComm_t comm, trestleStream_t stream);
/* send is read only at the root and may be NULL elsewhere. */
TRESTLE_API trestleResult_t trestleBroadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                             trestleComm_t comm, trestleStream_t stream);
/* recv is written only at the root and may be NULL elsewhere. */
TRESTLE_API trestleResult_t trestleReduce(const void* send, void* recv, size_t count, trestleDataType_t type,
                                          trestleRedOp_t op, int root, trestleComm_t comm, trestleStream_t stream);
/* Block p of send goes to rank p's block `rank`; send and recv hold nranks*count elements. */
TRESTLE_API trestleResult_t trestleAllToAll(const void* send, void* recv, size_t count, trestleDataType_t type,
                                            trestleComm_t comm, trestleStream_t stream);
/* Rank r's `count` elements go to block r of the root's recv (nranks*count elements); recv may be NULL elsewhere. */
TRESTLE_API trestleResult_t trestleGather(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                          trestleComm_t comm, trestleStream_t stream);
/* Block r of the root's send (nranks*count elements) goes to rank r; send may be NULL elsewhere. */
TRESTLE_API trestleResult_t trestleScatter(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                           trestleComm_t comm, trestleStream_t stream);

/* ---- Collectives with blocks of unequal lengths ------------------------------------------------------------------ */

/* Rank r's block goes to recv + displs[r] on every rank. recvcounts, not displs, must be the same on all ranks;
 * sendcount == recvcounts[rank]. */
TRESTLE_API trestleResult_t trestleAllGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                              const size_t* displs, trestleDataType_t type, trestleComm_t comm,
                                              trestleStream_t stream);
/* send holds the blocks of all ranks one after the other. Rank r receives the sum of the blocks r, recvcounts[r]
 * elements. recvcounts must be the same on all ranks. In place: recv == send + the counts before this rank's. */
TRESTLE_API trestleResult_t trestleReduceScatterV(const void* send, void* recv, const size_t* recvcounts,
                                                  trestleDataType_t type, trestleRedOp_t op, trestleComm_t comm,
                                                  trestleStream_t stream);
/* sendcounts[p] elements at send + sdispls[p] go to rank p; recvcounts[p] elements of rank p are written to recv +
 * rdispls[p]. Each rank knows only its own counts. The number that a rank sends to another and the number that the
 * other expects must be equal; otherwise both get trestleInvalidUsage with both numbers. In place (send == recv)
 * both lists are the same. */
TRESTLE_API trestleResult_t trestleAllToAllV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                             const size_t* recvcounts, const size_t* rdispls, trestleDataType_t type,
                                             trestleComm_t comm, trestleStream_t stream);
/* Rank r's sendcount elements are written to the root's recv + displs[r]. recv, recvcounts and displs are read only
 * on the root. A sendcount that is not the root's recvcounts[r] is trestleInvalidUsage on both, with both numbers. */
TRESTLE_API trestleResult_t trestleGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                           const size_t* displs, trestleDataType_t type, int root, trestleComm_t comm,
                                           trestleStream_t stream);
/* sendcounts[r] elements at the root's send + displs[r] go to rank r, which expects recvcount. send, sendcounts and
 * displs are read only on the root. Counts that differ: as with trestleGatherV. */
TRESTLE_API trestleResult_t trestleScatterV(const void* send, const size_t* sendcounts, const size_t* displs, void* recv,
                                            size_t recvcount, trestleDataType_t type, int root, trestleComm_t comm,
                                            trestleStream_t stream);

/* ---- Messages, barrier, groups ----------------------------------------------------------------------------------- */

/* Matched in call order per pair of ranks, also with 0 elements. A stream is blocked until the message is matched:
 * group calls that must overlap. If a Recv of a group writes to memory that a Send of the same group reads, the data
 * sent is undefined, and nothing else is. */
TRESTLE_API trestleResult_t trestleSend(const void* send, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                                        trestleStream_t stream);
TRESTLE_API trestleResult_t trestleRecv(void* recv, size_t count, trestleDataType_t type, int peer, trestleComm_t comm,
                                        trestleStream_t stream);
/* Complete when every rank's stream has reached it. */
TRESTLE_API trestleResult_t trestleBarrier(trestleComm_t comm, trestleStream_t stream);

/* Calls between Start and End (of one thread; may nest) are enqueued together at the outermost End and progress
 * together, also if they share a stream: none waits for another of its group. They may be on several communicators.
 * If one is refused, at once or by End, End returns the first such error and does nothing of the group except
 * CommDestroy.
 *
 * End does things in this order: CommInitRank, CommSplit (all of the group at the same time; each handle is NULL
 * until then, and if one fails all stay NULL), collectives, messages and halves of requests, CommFinalize,
 * CommDestroy. CommAbort and all other functions do not wait for End. Groups are asynchronous as single calls are:
 * End waits for CommDestroy and for blocking CommInitRank, CommSplit, CommFinalize.
 *
 * A call that waits for calls in the thread's own open group is trestleInvalidUsage, because those have not begun:
 * CommSynchronize of their communicator, StreamSynchronize and StreamQuery of their stream, RequestWait and
 * RequestTest of their request, EventSynchronize and EventQuery of an event that was recorded there after them (it
 * does not stand for them, because End enqueues them behind it). If a thread ends with an open group, its calls are
 * dropped, and the log reports that (WARN). */
TRESTLE_API trestleResult_t trestleGroupStart(void);
TRESTLE_API trestleResult_t trestleGroupEnd(void);

/* ---- Decomposable all-reduce and requests ------------------------------------------------------------------------ */

typedef struct {
  size_t offset; /* elements from the start of the receive buffer */
  size_t count;  /* elements */
} trestleRange_t;

/* The ranges of a buffer of `count` elements that are rank `rank`'s shard. They depend only on communicator, type
 * and count. Writes at most *nranges of them and sets *nranges to how many there are (ranges may be NULL to ask for
 * the number). */
TRESTLE_API trestleResult_t trestleShardRanges(trestleComm_t comm, int rank, size_t count, trestleDataType_t type,
                                               trestleRange_t* ranges, int* nranges);
/* All reduce-scatter phases. When the request completes, this rank's shard of recv holds the reduced values and may
 * be read and changed; the rest of recv is unspecified. Buffers as in trestleAllReduce; they are in use until Finish
 * is complete. A request that waits for its Finish does not block the stream.
 *
 * Inside a group it begins at GroupEnd, as RequestStart and AllReduceFinish do. Until then the request cannot be
 * tested, finished or freed (trestleInvalidUsage), so the two halves of one request need two groups. If GroupEnd
 * fails, the half was not begun; call RequestFree for a request that is not needed any more. */
TRESTLE_API trestleResult_t trestleAllReduceStart(const void* send, void* recv, size_t count, trestleDataType_t type,
                                                  trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                                  trestleRequest_t* request);
/* All all-gather phases, from the shards in recv. Waits inside the stream for Start. The request stands for both halves. */
TRESTLE_API trestleResult_t trestleAllReduceFinish(trestleRequest_t request, trestleStream_t stream);
/* Persistent form of both halves: Init plans once. Each RequestStart + AllReduceFinish runs one all-reduce on the same
 * buffers. trestleAllReduceInit is the persistent form of the whole. */
TRESTLE_API trestleResult_t trestleAllReduceStartInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                                 trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                                 trestleRequest_t* request);
/* Starts an inactive persistent request: the reduce-scatter half for a request of AllReduceStartInit, the whole
 * collective for any other one. */
TRESTLE_API trestleResult_t trestleRequestStart(trestleRequest_t request);
/* Writes 1 to done if what was started last (Start or Finish) is complete, or if nothing was ever started, else 0.
 * If it is complete and the communicator has failed, returns that failure instead. Drives progress. */
TRESTLE_API trestleResult_t trestleRequestTest(trestleRequest_t request, int* done);
/* Waits until what was started last is complete. trestleSuccess, or the communicator's failure. */
TRESTLE_API trestleResult_t trestleRequestWait(trestleRequest_t request);
/* Frees a request that is complete or was never started; trestleInvalidUsage while it is in flight. */
TRESTLE_API trestleResult_t trestleRequestFree(trestleRequest_t request);

/* ---- Memory and planning ----------------------------------------------------------------------------------------- */

/* Memory that ranks of the same host can map, so that shared memory moves nothing twice. Page aligned; zeroed.
 * Ordinary memory works everywhere too. A forked child shares it with its parent: each reads what the other writes.
 * For the child's own calls it is ordinary memory, and MemFree in the child is trestleInvalidUsage. */
TRESTLE_API trestleResult_t trestleMemAlloc(void** ptr, size_t size);
TRESTLE_API trestleResult_t trestleMemFree(void* ptr);

/* Makes memory that the caller has mapped from a memfd like memory of MemAlloc for this communicator: ranks of the
 * same host read it, whole or in parts, in place. Other ranks, and communicators in which it is not registered,
 * treat it as ordinary memory. So does a call whose buffer is only partly inside one registration.
 *
 * [buff, buff + size) must be inside one mapping made with MAP_SHARED and PROT_WRITE. A descriptor of the memfd must
 * be open. This call seals the memfd against shrinking if it is not sealed yet, and the memfd must allow that
 * (MFD_ALLOW_SEALING). Memory that is not mapped, or of another kind, is trestleInvalidArgument, with a sentence
 * that says what it is. Memory that overlaps with a registration of comm, or is of MemAlloc, is trestleInvalidUsage.
 * Not collective: each rank registers what it likes. *handle is valid until CommDeregister or the communicator's
 * end.
 *
 * Deregister before munmap. At each later call on such a buffer the library asks the kernel whether the memory still
 * exists. If not, the buffer is copied as ordinary memory and a warning is logged. (Before Linux 6.11 that query
 * takes tens of microseconds.) Unmapping a buffer while an operation uses it is undefined, as always. */
TRESTLE_API trestleResult_t trestleCommRegister(trestleComm_t comm, void* buff, size_t size, void** handle);
/* From now on the memory is ordinary memory, also for calls that were planned before. trestleInvalidUsage while any
 * operation of the communicator is under way (synchronize first). trestleInvalidArgument for a handle that is not of
 * a registration with comm, or was deregistered before. */
TRESTLE_API trestleResult_t trestleCommDeregister(trestleComm_t comm, void* handle);

/* Predicted time of one collective on host memory, in microseconds, from the communicator's cost model. `count` is its
 * elements as in that call; for v-variants it is the count of every block. */
TRESTLE_API trestleResult_t trestlePredictTime(trestleComm_t comm, trestleCollective_t collective, size_t count,
                                               trestleDataType_t type, double* microseconds);

#ifdef __cplusplus
}
#endif

#include "trestle/call_config.h" /* trestleCallConfigPush, trestleCallConfigPop */
#include "trestle/operators.h"   /* trestleRedOpCreatePreMulSum, trestleRedOpCreate, trestleRedOpDestroy */
#include "trestle/persistent.h"  /* trestleAllReduceInit ... trestleScatterVInit */
#include "trestle/statistics.h"  /* trestleCommGetStats, trestleCommMemStats */

#endif /* TRESTLE_TRESTLE_H_ */
