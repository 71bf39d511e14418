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
 * A scheduler has a thread of its own. It makes all calls on the communicators, in an order that the plan fixes, so
 * gradients may become ready in another order on each rank. From trestleGradCreate to trestleGradDestroy the
 * communicators take no other collectives of the program, except after trestleGradSynchronize and before the next
 * trestleGradReady; under a policy that delays gradients only after trestleGradDrain. Scopes of trestleCallConfigPush
 * do not apply to it. Several schedulers need communicators of their own.
 *
 * Any thread may call. One scheduler takes calls of several threads, where different threads use different tensors.
 * trestleGradRegister, trestleGradPlan, the profile calls, trestleGradStepEnd, trestleGradSynchronize and
 * trestleGradDrain are for one thread at a time. While trestleGradPlan, trestleGradDrain or a profile call runs, no
 * other thread may call trestleGradReady, trestleGradWaitParam, trestleGradStepEnd or trestleGradSynchronize. A
 * failure of any of its communicators ends every call at once with its code and sentence, also calls that wait, and
 * whether anything is under way there or not. Behind a failure all memory stays in use until trestleGradDestroy.
 * trestleGetLastError(NULL) has the sentence of a call that was refused. */
typedef struct trestleGrad* trestleGrad_t;

/* What a policy may do to the training itself. Bits of trestleGradConfig_t.allow. */
typedef enum TRESTLE_ANY_INT {
  trestleGradAllowNone = 0,
  trestleGradAllowStale = 1,      /* updates may use gradients of earlier steps */
  trestleGradAllowCompression = 2 /* only the largest elements of gradients may travel, the others in later steps */
} trestleGradAllow_t;

/* Applies an update to `count` elements of a tensor, from its element `offset` on. `gradient` has the reduced values,
 * `parameter` is the memory given to trestleGradRegister. It runs on the scheduler's thread, between the
 * reduce-scatter and the all-gather: each rank updates its own shard, and the updated parameters are gathered
 * (Rajbhandari et al., SC 2020, section 5, stage 1). Under a policy without halves, or one that compresses, every rank
 * updates whole tensors.
 * It may call only trestleGetVersion, trestleGetErrorString and trestleGetLastError. An exception that it throws ends
 * the scheduler, and the other ranks' calls end at the communicator's deadline. */
typedef void (*trestleGradUpdate_t)(void* context, int tensor, size_t offset, size_t count, const void* gradient,
                                    void* parameter);

/* As trestleGradUpdate_t, for policies that delay gradients. `gradient` sums those of `batches` steps, at least 1, of
 * which the oldest is `age` steps older than the present one. Other policies give 1 and 0. */
typedef void (*trestleGradMergedUpdate_t)(void* context, int tensor, size_t offset, size_t count, const void* gradient,
                                          void* parameter, int batches, int age);

#define TRESTLE_GRAD_CONFIG_MAGIC 0x7e571e06u

/* Append-only, as trestleConfig_t. op and allow must be the same on all ranks, and an update function must be given on
 * all or none. */
typedef struct {
  size_t size;                /* sizeof(trestleGradConfig_t) */
  unsigned magic;             /* TRESTLE_GRAD_CONFIG_MAGIC */
  unsigned version;           /* TRESTLE_VERSION_CODE */
  int op;                     /* trestleSum (default) or trestleAvg */
  unsigned allow;             /* of trestleGradAllow_t */
  trestleGradUpdate_t update; /* NULL: the sums come back in the gradients' memory, and the program updates */
  void* updateContext;
  int countNans;              /* 1: each rank counts elements of its gradients that are not a number, which takes another
                                 pass over them. Such elements travel and spread as others do. Policies that compress
                                 count them in any case */
  trestleGradMergedUpdate_t updateMerged; /* in the place of `update`, with the same updateContext */
} trestleGradConfig_t;

#define TRESTLE_GRAD_CONFIG_INITIALIZER \
  { sizeof(trestleGradConfig_t), TRESTLE_GRAD_CONFIG_MAGIC, TRESTLE_VERSION_CODE, trestleSum, 0, NULL, NULL, 0, NULL }

/* Makes a scheduler on comms[0 .. links-1], one communicator for each link, at most 16. Not collective. Each must have
 * the same ranks, and all ranks must give the same ones in the same order: every collective call compares that before
 * it puts anything on them, and all ranks get trestleInvalidUsage if it is not so. Where a rank has none of rank 0's
 * communicators, the call ends at the deadline. Give the fastest link first. Policies that delay gradients use all links
 * at the same time, the others the first one. Links that share no rail or path gain most: two interfaces
 * (`socketIfname`), or shared memory and TCP. config may be NULL; it is read before the call returns. The communicators
 * must outlive the scheduler. */
TRESTLE_API trestleResult_t trestleGradCreate(trestleGrad_t* grad, const trestleComm_t* comms, int links,
                                              const trestleGradConfig_t* config);
/* Takes no new calls, waits for those of other threads, and until the steps that have ended are complete, then frees.
 * Not collective. Gradients of a step that was not ended are dropped, and so are those that a policy has delayed
 * or compressed (trestleGradDrain). If other ranks will not take part any more, abort the communicators first. Behind a
 * failure of one link the other ranks stop too, so no message on another link would be complete before the deadline:
 * this call then ends the communicators on which this rank has messages under way, with the sentence of that failure. */
TRESTLE_API trestleResult_t trestleGradDestroy(trestleGrad_t grad);

/* Adds a tensor and writes its number: 0, 1, ... in the order of the calls, which is the order of the forward pass.
 * Names, counts and types must be the same on all ranks; trestleGradPlan compares them. A count of 0 is allowed. The
 * name is copied.
 *
 * gradient: `count` elements where each step's gradient lies and its sum is returned; or NULL if trestleGradReady says
 * where. A message of one tensor, or of neighbours of one type that lie together, travels from this memory. Other
 * messages are copied into a buffer; under "split_optimal:free", "deft" and "topk" all may be. parameter: `count`
 * elements of the same type, needed if the config has an `update`, else ignored. Both must stay until the scheduler is
 * destroyed. Gradients of two tensors must not overlap in memory, nor parameters: trestleGradPlan refuses that
 * (trestleInvalidArgument). Both are host memory, pinned or managed memory included: where a communicator has a
 * device, memory of devices is trestleInvalidArgument, here and in trestleGradReady. */
TRESTLE_API trestleResult_t trestleGradRegister(trestleGrad_t grad, const char* name, size_t count, trestleDataType_t type,
                                                void* gradient, void* parameter, int* tensor);

/* ---- Times of a training step ------------------------------------------------------------------------------------ */

/* Not collective. From the next step on the scheduler measures each tensor's times:
 * - backward: from the trestleGradReady before it in time;
 * - forward: from the return of its trestleGradWaitParam to the next such call. For the tensor waited for last: a third
 *   of the time to the first trestleGradReady, because its backward pass takes twice as long (arXiv 2302.12445, section
 *   2). Tensors that are not waited for have none.
 * Without a plan these steps compute only: gradients stay where they are, and waits return at once. */
TRESTLE_API trestleResult_t trestleGradProfileBegin(trestleGrad_t grad);
/* Collective, after at least one whole step. Averages the times over steps and ranks. Measures all-reduces of at least
 * six sizes, whole and in halves, and fits a startup and a time per byte to each by least squares of the relative
 * errors. Sizes that lie off the line of the others count less. Measures by how much copies into buffers and out of
 * them lengthen messages in a row. Measures each link by itself, and its ratio to the first one as for
 * trestleGradSetLinkRatios. If one rank cannot, no rank does. But a rank with a step under way is refused by
 * itself, and the others wait until it makes the call again, as for trestleGradPlan. */
TRESTLE_API trestleResult_t trestleGradProfileEnd(trestleGrad_t grad);

/* The time of a message of s bytes is startup + s * perByte, and 0 for none. Seconds. */
typedef struct {
  double startup;
  double perByte;
} trestleGradCost_t;

/* Supplies the times instead of measuring them: seconds, for each tensor in their order; and the costs of an
 * all-reduce, a reduce-scatter and an all-gather. Copies then count as free. Rank 0's values count. All must be finite
 * and not negative. */
TRESTLE_API trestleResult_t trestleGradSetTimes(trestleGrad_t grad, const double* forward, const double* backward,
                                                const trestleGradCost_t* allReduce, const trestleGradCost_t* reduceScatter,
                                                const trestleGradCost_t* allGather);
/* Supplies the links' speeds: ratios[i] is the time of a message on link i over its time on link 0, for all links of the
 * scheduler; 1 for link 0, and from 1 to 1000 for the others. Rank 0's ratios count. Without this or a profile all are
 * 1. */
TRESTLE_API trestleResult_t trestleGradSetLinkRatios(trestleGrad_t grad, const double* ratios, int links);
#define TRESTLE_GRAD_LOSS_MAGIC 0x7e571e0du

/* How the loss answers to updates (arXiv 2503.16815, section 4): an update of one step's gradients takes it to
 * leastLoss + |loss - leastLoss - rate D|, where D is normal with the mean `drift` and the deviation `deviation` /
 * sqrt(batch). All must be finite, `batch` positive, `deviation` and `epsilon` not negative. Append-only. */
typedef struct {
  size_t size;      /* sizeof(trestleGradLoss_t) */
  unsigned magic;   /* TRESTLE_GRAD_LOSS_MAGIC */
  unsigned version; /* TRESTLE_VERSION_CODE */
  double loss;      /* now */
  double leastLoss;
  double rate;      /* the learning rate */
  double drift;
  double deviation; /* of one sample */
  double batch;     /* samples of a step, over all ranks */
  double epsilon;   /* the ratio (loss after single updates) / (loss after merged ones) may differ from 1 by so much */
  int mean;         /* 1: the program divides each result by its number of batches; 0: it applies the sum */
  int reserved;     /* 0, as in trestleConfig_t */
} trestleGradLoss_t;

#define TRESTLE_GRAD_LOSS_INITIALIZER \
  { sizeof(trestleGradLoss_t), TRESTLE_GRAD_LOSS_MAGIC, TRESTLE_VERSION_CODE, 0, 0, 0, 0, 0, 1, 0.01, 0, 0 }

/* Limits the delay of gradients: with such a model "deft" lets more travel in each step, until the expected loss is as
 * near to that of single updates as `epsilon` says, at most twice of what the passes hide; compute waits for the rest.
 * Rank 0's model counts, from the next plan on. NULL: no model. With a model, trestleGradPlanJson has `capacity`,
 * loss_ratio and loss_accepted. */
TRESTLE_API trestleResult_t trestleGradSetLoss(trestleGrad_t grad, const trestleGradLoss_t* loss);
/* Collective, between steps, after at least one step that was measured, before the first plan. Estimates `drift` and
 * `deviation` from the ranks' gradients of the last step, and writes them. Reads `batch`, and leaves the other fields.
 * The gradients must still lie where trestleGradReady said, each the mean over its rank's samples. With one rank the
 * deviation is 0. If one rank cannot, no rank does. All ranks must give the same batch. */
TRESTLE_API trestleResult_t trestleGradMeasureLoss(trestleGrad_t grad, trestleGradLoss_t* loss);
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
 *
 * "deft" delays gradients (arXiv 2503.16815), so `allow` must have trestleGradAllowStale. While gradients are pending
 * under such a plan, trestleGradPlan is trestleInvalidUsage on all ranks: trestleGradDrain comes first. The same holds
 * for "topk" (below), which needs trestleGradAllowCompression, while elements have not travelled. Under "topk" tensors
 * with elements must be float32, float16, bfloat16 or float64 and have at most 2^32 elements (trestleInvalidUsage). If
 * one is not, "auto" does not choose "topk". */
TRESTLE_API trestleResult_t trestleGradPlan(trestleGrad_t grad, const char* policy);
/* Writes the plan as JSON: policy, iteration_s and exposed_s as predicted (0 without times), updates_per_iteration, age,
 * batches, groups and gather_groups; of a plan that compresses also ratio, collective and selection_s. A group is its
 * first and its last tensor. A number that is not finite is null. */
TRESTLE_API trestleResult_t trestleGradPlanJson(trestleGrad_t grad, char* text, size_t* size);
/* Writes the predicted time of a step under a policy, in seconds. Needs times and costs. Not collective. */
TRESTLE_API trestleResult_t trestleGradSimulate(trestleGrad_t grad, const char* policy, double* seconds);

/* ---- Running training steps -------------------------------------------------------------------------------------- */

/* The gradient of the tensor is complete. Only marks it and wakes the scheduler's thread; never waits, never sends.
 * gradient: where it lies, NULL for the registered memory. That memory is in use until trestleGradWaitParam or
 * trestleGradSynchronize. With an `update`, its content is unspecified afterwards. The parameter is in use for the same
 * time: it may be updated before the step ends. So make this call when nothing in this backward pass reads the
 * parameter any more.
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
 * has not ended are not waited for, nor those that a policy has delayed to later steps. */
TRESTLE_API trestleResult_t trestleGradSynchronize(trestleGrad_t grad);

/* ---- Delayed updates ---------------------------------------------------------------------------------------------- */

/* Under a policy that delays gradients, the calls above are the same, but a step's result may be of earlier steps:
 *
 * - The scheduler adds each gradient to a sum of its own. So the program's memory is free again when
 *   trestleGradWaitParam returns. These sums take twice the bytes of all gradients.
 * - In some steps an update is due. Its gradients are one or more steps old, and may be the sum of those of several
 *   steps, over all ranks (op trestleAvg: the mean over the ranks of that sum). trestleGradWaitParam waits for it.
 * - In the other steps no update is due. With an update function nothing is called. Without one the result is the sum of
 *   nothing: zeros. A program that needs to know asks trestleGradBatches.
 *
 * Which steps these are, and of which gradients, follows from the plan and the number of steps since the plan or the
 * last trestleGradDrain. It is the same on all ranks and does not depend on time. Every gradient is in one result. The
 * scheduler counts that: if one were lost or doubled, it ends with a sentence (trestleInternalError). */

/* Writes how many steps' gradients the tensor's result has, and by how many steps the oldest of them is older than the
 * last step. Valid after trestleGradWaitParam, trestleGradSynchronize or trestleGradDrain has waited for the result,
 * until the tensor is ready again; else trestleInvalidUsage. 0 batches: no update is due, or there was no step under a
 * plan. Policies that delay nothing give 1 and 0. batches and age may be NULL. */
TRESTLE_API trestleResult_t trestleGradBatches(trestleGrad_t grad, int tensor, int* batches, int* age);
/* Collective, between steps: brings in all gradients that are pending, as one result of each tensor. Waits. Call it at
 * the end of the training, and before the parameters are saved or the plan is changed. *batches: of how many steps the
 * result has the gradients; 0: none were pending, and nothing has changed. batches may be NULL.
 *
 * A rank with a step under way is refused by itself, as for trestleGradPlan.
 *
 * With an update function, every rank updates whole tensors with this result. Without one, the sums lie in the
 * gradients' memory, in that of the last trestleGradReady. So the result of the last step must have been waited for
 * (trestleInvalidUsage). The next step begins as the first one of the plan does. */
TRESTLE_API trestleResult_t trestleGradDrain(trestleGrad_t grad, int* batches);

/* ---- Compressed updates ------------------------------------------------------------------------------------------- */

/* Under "topk" the calls above are the same, but of each tensor only so many elements travel in a step as the plan's
 * ratio says, rounded up (AR-Topk: FLEX, arXiv 2312.02493). The scheduler adds each gradient to a residual of its own.
 * The elements of the residual with the largest magnitudes leave it and travel; of equal ones the first. In step i since
 * the plan or the last trestleGradDrain, rank i mod N names the elements of all ranks. Where the plan's collective is an
 * all-gather, each rank names its own. A result is the sum of what travelled over all ranks (op trestleAvg: the mean),
 * and 0 elsewhere. So a result and what is left in the residuals have every gradient once. Elements are chosen of each
 * tensor by itself. They are not the largest of all tensors together.
 *
 * A NaN is larger than all numbers and travels as soon as its rank names the elements. Residuals and messages of float16
 * and bfloat16 gradients are float32; only results are rounded. Residuals, values and indices take memory of the
 * scheduler's own. trestleGradDrain brings in the sums of the residuals, of all steps since the plan or the last one. */

/* ---- Statistics of a scheduler ----------------------------------------------------------------------------------- */

#define TRESTLE_GRAD_STATS_MAGIC 0x7e571e07u

/* Everything since the scheduler was created. Append-only: `size` says how much of it the caller knows. */
typedef struct {
  size_t size;           /* sizeof(trestleGradStats_t) */
  unsigned magic;        /* TRESTLE_GRAD_STATS_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  uint64_t steps;        /* that were ended */
  uint64_t messages;     /* handed to the communicator; each half of an all-reduce is one */
  uint64_t bytes;        /* of gradients, parameters and indices in them */
  uint64_t copiedBytes;  /* copied into buffers and out of them; each copy counts. Others travelled in place */
  uint64_t waitNs;       /* time that threads spent waiting in trestleGradWaitParam and trestleGradSynchronize */
  uint64_t lastStepNs;   /* between the ends of the last two steps; 0: fewer than two */
  uint64_t plannedNs;    /* predicted time of a step under the plan; 0: without times */
  uint64_t plans;        /* plans that were taken */
  uint64_t age;          /* the greatest age of gradients in an update, in steps, as planned */
  uint64_t nans;         /* elements of this rank's gradients that were not a number, if countNans is 1 */
  /* Under policies that delay gradients: */
  uint64_t delayedUpdates; /* results with gradients. One for all tensors counts once */
  uint64_t delayedBatches; /* steps whose gradients these have */
  uint64_t pendingBatches; /* steps whose gradients no result has yet */
  uint64_t ageSum;         /* over delayedBatches: by how many steps each was old. So the mean is ageSum / delayedBatches */
  uint64_t oldestAge;      /* the most of these */
  /* Under policies that compress: */
  double ratio;                /* of the present plan: the part of the elements that travels; 1 without compression */
  double gain;                 /* of the last step: |what this rank sent|^2 / |gradient + residual|^2; 1 for zeros */
  uint64_t compressedElements; /* of this rank's gradients that were added to residuals */
  uint64_t sentElements;       /* that this rank sent in their place, with an index each */
  uint64_t compressNs;         /* time to add, to select and to distribute them */
} trestleGradStats_t;

#define TRESTLE_GRAD_STATS_INITIALIZER                                                                                  \
  { sizeof(trestleGradStats_t), TRESTLE_GRAD_STATS_MAGIC, TRESTLE_VERSION_CODE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0 }

/* Fills in as much of *stats as its size says. Never waits. */
TRESTLE_API trestleResult_t trestleGradGetStats(trestleGrad_t grad, trestleGradStats_t* stats);

/* ---- Traces of steps --------------------------------------------------------------------------------------------- */

/* From now on the scheduler keeps the last `events` events (at most 16777216), and forgets those before; 0: it keeps
 * none. Waits for what is under way. Between steps; not collective. While it runs, no other thread may make the calls
 * of a step or trestleGradTraceJson. Takes 64 bytes for each event. A step has two for each tensor, three for each
 * message (under "topk" five), and one for its end. As after trestleGradPlan, tensors can no longer be registered.
 * While events are kept, trestleGradReady reads the clock. */
TRESTLE_API trestleResult_t trestleGradTraceBegin(trestleGrad_t grad, size_t events);
/* Writes these events as a timeline in Chrome's trace format, which chrome://tracing and ui.perfetto.dev show: when
 * each gradient was ready and each step ended, each wait in trestleGradWaitParam, and of each message when it was
 * copied into its buffer and issued ("pack"), was on its way ("travel"), and was updated and copied back ("unpack").
 * Under "topk" also when this rank chose a message's elements ("select"), and when their indices were on their way
 * before the values were packed ("indices"). With an all-gather both travel together. And each trestleGradDrain that
 * brought something in ("drain"). Lanes are the gradients, the waits and each link. Microseconds of CLOCK_MONOTONIC; the
 * process is the rank, so the events of ranks of one machine may be joined. A text function as trestleGradProfileJson.
 * Any time except beside trestleGradTraceBegin. While steps run the text may grow between two calls: then make room for
 * what *size says.
 * trestleInvalidUsage: no events are kept. */
TRESTLE_API trestleResult_t trestleGradTraceJson(trestleGrad_t grad, char* text, size_t* size);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_GRADIENT_H_ */
