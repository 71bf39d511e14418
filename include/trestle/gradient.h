/* Trestle: the scheduler of gradients in data-parallel training. Include it beside trestle.h. */
#ifndef TRESTLE_GRADIENT_H_
#define TRESTLE_GRADIENT_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Training steps ---------------------------------------------------------------------------------------------- */

/* A scheduler adds gradients over all ranks while the step goes on. A policy says which of them travel together, and
 * when. docs/training.md describes the policies with their papers. One step of every rank:
 *
 *   forward pass    for tensors 0 .. L-1: trestleGradWaitParam (from the second step on), then compute
 *   backward pass   for tensors L-1 .. 0: compute, then trestleGradReady
 *   its end         trestleGradStepEnd
 *
 * Once: trestleGradCreate, trestleGradRegister for each tensor, trestleGradPlan. To plan by measured times, run some
 * steps between trestleGradProfileBegin and trestleGradProfileEnd, then plan again.
 *
 * A scheduler has a thread of its own. It makes all calls on the communicator, in an order that the plan fixes, so
 * gradients may become ready in another order on each rank. From trestleGradCreate to trestleGradDestroy the
 * communicator takes no other collectives of the program, except after trestleGradSynchronize and before the next
 * trestleGradReady. Scopes of trestleCallConfigPush do not apply to it. Several schedulers need a communicator each.
 *
 * Any thread may call. One scheduler takes calls of several threads, where different threads use different tensors.
 * trestleGradRegister, trestleGradPlan, the profile calls, trestleGradStepEnd and trestleGradSynchronize are for one
 * thread at a time. While trestleGradPlan or a profile call runs, no other thread may call trestleGradReady,
 * trestleGradWaitParam, trestleGradStepEnd or trestleGradSynchronize. A failure of the communicator ends every call with the communicator's code and sentence, also calls
 * that wait. trestleGetLastError(NULL) has the sentence of a call that was refused. */
typedef struct trestleGrad* trestleGrad_t;

/* What a policy may do to the training itself. Bits of trestleGradConfig_t.allow. */
typedef enum TRESTLE_ANY_INT {
  trestleGradAllowNone = 0,
  trestleGradAllowStale = 1 /* updates may use gradients of earlier steps */
} trestleGradAllow_t;

/* Applies an update to `count` elements of a tensor, from its element `offset` on. `gradient` has the reduced values,
 * `parameter` is the memory given to trestleGradRegister. It runs on the scheduler's thread, between the
 * reduce-scatter and the all-gather: each rank updates its own shard, and the updated parameters are gathered
 * (Rajbhandari et al., SC 2020, section 5, stage 1). Under a policy without halves every rank updates whole tensors.
 * It may call only trestleGetVersion, trestleGetErrorString and trestleGetLastError. An exception that it throws ends
 * the scheduler, and the other ranks' calls end at the communicator's deadline. */
typedef void (*trestleGradUpdate_t)(void* context, int tensor, size_t offset, size_t count, const void* gradient,
                                    void* parameter);

#define TRESTLE_GRAD_CONFIG_MAGIC 0x7e571e06u

/* Append-only, as trestleConfig_t. op and allow must be the same on all ranks, and `update` must be given on all or
 * none. */
typedef struct {
  size_t size;                /* sizeof(trestleGradConfig_t) */
  unsigned magic;             /* TRESTLE_GRAD_CONFIG_MAGIC */
  unsigned version;           /* TRESTLE_VERSION_CODE */
  int op;                     /* trestleSum (default) or trestleAvg */
  unsigned allow;             /* of trestleGradAllow_t */
  trestleGradUpdate_t update; /* NULL: the sums come back in the gradients' memory, and the program updates */
  void* updateContext;
  int countNans;              /* 1: each rank counts elements of its gradients that are not a number, which takes another
                                 pass over them. Such elements travel and spread as others do */
} trestleGradConfig_t;

#define TRESTLE_GRAD_CONFIG_INITIALIZER \
  { sizeof(trestleGradConfig_t), TRESTLE_GRAD_CONFIG_MAGIC, TRESTLE_VERSION_CODE, trestleSum, 0, NULL, NULL, 0 }

/* Makes a scheduler on comms[0 .. links-1], one communicator for each link. At present links must be 1. Not collective.
 * config may be NULL; it is read before the call returns. The communicator must outlive the scheduler. */
TRESTLE_API trestleResult_t trestleGradCreate(trestleGrad_t* grad, const trestleComm_t* comms, int links,
                                              const trestleGradConfig_t* config);
/* Takes no new calls, waits for those of other threads, and until the steps that have ended are complete, then frees.
 * Not collective. Gradients of a step that was not ended are dropped. If other ranks will not take part any more, abort
 * the communicator first. */
TRESTLE_API trestleResult_t trestleGradDestroy(trestleGrad_t grad);

/* Adds a tensor and writes its number: 0, 1, ... in the order of the calls, which is the order of the forward pass.
 * Names, counts and types must be the same on all ranks; trestleGradPlan compares them. A count of 0 is allowed. The
 * name is copied.
 *
 * gradient: `count` elements where each step's gradient lies and its sum is returned; or NULL if trestleGradReady says
 * where. Neighbouring tensors of one type that lie together in memory travel from there. Others are copied into a
 * buffer. parameter: `count` elements of the same type, needed if the config has an `update`, else ignored. Both must
 * stay until the scheduler is destroyed. Gradients of two tensors must not overlap in memory, nor parameters:
 * trestleGradPlan refuses that (trestleInvalidArgument). */
TRESTLE_API trestleResult_t trestleGradRegister(trestleGrad_t grad, const char* name, size_t count, trestleDataType_t type,
                                                void* gradient, void* parameter, int* tensor);

/* ---- Times of a training step ------------------------------------------------------------------------------------ */

/* From the next step on the scheduler measures each tensor's times:
 * - backward: from the trestleGradReady before it in time;
 * - forward: from the return of its trestleGradWaitParam to the next such call. For the tensor waited for last: a third
 *   of the time to the first trestleGradReady, because its backward pass takes twice as long (arXiv 2302.12445, section
 *   2). Tensors that are not waited for have none.
 * Without a plan these steps compute only: gradients stay where they are, and waits return at once. */
TRESTLE_API trestleResult_t trestleGradProfileBegin(trestleGrad_t grad);
/* Collective, after at least one whole step. Averages the times over steps and ranks. Measures all-reduces of at least
 * six sizes, whole and in halves, and fits a startup and a time per byte to each by least squares of the relative
 * errors. Sizes that lie off the line of the others count less. If one rank cannot, no rank does. But a rank with a
 * step under way is refused by itself, and the others wait until it makes the call again, as for trestleGradPlan. */
TRESTLE_API trestleResult_t trestleGradProfileEnd(trestleGrad_t grad);

/* The time of a message of s bytes is startup + s * perByte, and 0 for none. Seconds. */
typedef struct {
  double startup;
  double perByte;
} trestleGradCost_t;

/* Supplies the times instead of measuring them: seconds, for each tensor in their order; and the costs of an
 * all-reduce, a reduce-scatter and an all-gather. Rank 0's count. All must be finite and not negative. */
TRESTLE_API trestleResult_t trestleGradSetTimes(trestleGrad_t grad, const double* forward, const double* backward,
                                                const trestleGradCost_t* allReduce, const trestleGradCost_t* reduceScatter,
                                                const trestleGradCost_t* allGather);
/* Writes the measured or supplied times as a workload for `trestle train --workload`. Text functions: *size is the
 * room at `text`, and then the length with its closing 0. If that does not fit, only *size is written
 * (trestleInvalidArgument). `text` may be NULL to ask for the length (trestleSuccess). */
TRESTLE_API trestleResult_t trestleGradProfileJson(trestleGrad_t grad, char* text, size_t* size);

/* ---- Plans of a training step ------------------------------------------------------------------------------------ */

/* Collective, between steps. Waits for what is under way. policy: as `trestle train --policy` takes it, for example
 * "wfbp", "threshold:25M", "optimal", "dear:25M:eager", "split_optimal:shared" or "auto". The same on all ranks.
 *
 * Compares what the ranks registered: if that differs, all ranks get trestleInvalidUsage, with the rank, the tensor
 * and both sizes. Rank 0 plans. All ranks get its plan byte for byte and verify its checksum. If one rank cannot take
 * it, no rank does, and the plan before it stays.
 *
 * A rank on which a step is under way is refused by itself (trestleInvalidUsage), because its messages are not complete
 * without the other ranks. They wait until it ends the step and makes the call again.
 *
 * The predicted time of a step is that of MG-WFBP (arXiv 1912.09268, equations 3 and 7 to 9), for reduce-scatters and
 * all-gathers that of arXiv 2302.12445 (equations 3 to 9). Some policies need times and costs. Without them they are
 * trestleInvalidUsage. "auto" takes the policy with the least predicted time among those that `allow` permits.
 * Policies that delay gradients ("deft") are not carried out. */
TRESTLE_API trestleResult_t trestleGradPlan(trestleGrad_t grad, const char* policy);
/* Writes the plan as JSON: policy, iteration_s and exposed_s as predicted (0 without times), updates_per_iteration, age,
 * batches, groups and gather_groups. A group is its first and its last tensor. */
TRESTLE_API trestleResult_t trestleGradPlanJson(trestleGrad_t grad, char* text, size_t* size);
/* Writes the predicted time of a step under a policy, in seconds. Needs times and costs. Not collective. */
TRESTLE_API trestleResult_t trestleGradSimulate(trestleGrad_t grad, const char* policy, double* seconds);

/* ---- Running training steps -------------------------------------------------------------------------------------- */

/* The gradient of the tensor is complete. Only marks it and wakes the scheduler's thread; never waits, never sends.
 * gradient: where it lies, NULL for the registered memory. That memory is in use until trestleGradWaitParam or
 * trestleGradSynchronize. With an `update`, its content is unspecified afterwards. And the parameter is in use as long:
 * it may be updated before the step ends. So call it when nothing in this backward pass reads the parameter any more.
 *
 * trestleInvalidUsage: the tensor is ready already in this step; its result of the step before was not waited for; there
 * is no plan and no profile. */
TRESTLE_API trestleResult_t trestleGradReady(trestleGrad_t grad, int tensor, void* gradient);
/* Waits until the tensor's parameter may be used: the sum of the last step's gradients is in place, or its update.
 * trestleInvalidUsage before the first step has ended, and for a tensor that is ready in a step that has not ended.
 * While times are measured, the first step may call it too. */
TRESTLE_API trestleResult_t trestleGradWaitParam(trestleGrad_t grad, int tensor);
/* Ends the step. Does not wait. If gradients are missing: trestleInvalidUsage, which names them; the step goes on, and
 * the call may be made again. */
TRESTLE_API trestleResult_t trestleGradStepEnd(trestleGrad_t grad);
/* Waits until the results of the last ended step are in place, for all tensors. Gradients that are ready in a step that
 * has not ended are not waited for. */
TRESTLE_API trestleResult_t trestleGradSynchronize(trestleGrad_t grad);

#define TRESTLE_GRAD_STATS_MAGIC 0x7e571e07u

/* Everything since the scheduler was created. Append-only: `size` says how much of it the caller knows. */
typedef struct {
  size_t size;           /* sizeof(trestleGradStats_t) */
  unsigned magic;        /* TRESTLE_GRAD_STATS_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  uint64_t steps;        /* that were ended */
  uint64_t messages;     /* handed to the communicator; each half of an all-reduce is one */
  uint64_t bytes;        /* of gradients and parameters in them */
  uint64_t copiedBytes;  /* of those: copied into a buffer and out of it. Others travelled from where they lie */
  uint64_t waitNs;       /* time that threads spent waiting in trestleGradWaitParam and trestleGradSynchronize */
  uint64_t lastStepNs;   /* between the ends of the last two steps; 0: fewer than two */
  uint64_t plannedNs;    /* predicted time of a step under the plan; 0: without times */
  uint64_t plans;        /* plans that were taken */
  uint64_t age;          /* steps by which the gradients of an update are old */
  uint64_t nans;         /* elements of this rank's gradients that were not a number, if countNans is 1 */
} trestleGradStats_t;

#define TRESTLE_GRAD_STATS_INITIALIZER \
  { sizeof(trestleGradStats_t), TRESTLE_GRAD_STATS_MAGIC, TRESTLE_VERSION_CODE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills in as much of *stats as its size says. Never waits. */
TRESTLE_API trestleResult_t trestleGradGetStats(trestleGrad_t grad, trestleGradStats_t* stats);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_GRADIENT_H_ */
