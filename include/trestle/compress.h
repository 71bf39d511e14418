/* Trestle: all-reduces of gradients of which only the largest elements travel. Include it beside trestle.h. */
#ifndef TRESTLE_COMPRESS_H_
#define TRESTLE_COMPRESS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Compressed all-reduce --------------------------------------------------------------------------------------- */

/* Adds the largest elements of a gradient over all ranks. What a rank does not send stays in its residual and is added
 * to its next gradient (error feedback), so nothing is lost. docs/training.md, "Compressed exchange", has the papers.
 * Let G be gradient + residual, n its length, and k = ceil(ratio * n), at least 1. Methods:
 *
 *   trestleTopKStar           AR-Topk (FLEX, arXiv 2312.02493, section 3): one rank names the k largest elements of its
 *                             G, and all ranks send these: a broadcast and an all-reduce. The ranks take turns
 *   trestleTopKVar            the same, but the rank with the largest norm of its k elements names them
 *   trestleTopKExact          AG-Topk: each rank sends the k largest elements of its own G: an all-gather
 *   trestleTopKLayerwise      LWTopk: the largest of each layer, k by the layer's length; an all-gather
 *   trestleTopKMultiSampling  MSTopk (Shi et al., MLSys 2021): the threshold by 25 bisections; an all-gather
 *   trestleTopKAuto           Star or Exact, as the collective says
 *
 * A trestleTopK_t holds what outlasts a step: the number of steps, memory for messages, what is known of the links, the
 * present ratio and collective. The gradient, the residual and the result are the program's memory.
 *
 * Calls are synchronous and take no stream: a rank selects elements between two messages, and the second depends on the
 * first. So each call is complete when it returns. trestleTopKCreate, trestleTopKFit, trestleTopKSetRatio and
 * trestleAllReduceTopK are collective: all ranks make them in the same order, also beside other collectives of the
 * communicator. They are trestleInvalidUsage in an open group. Of trestleCallConfigPush only deadlines apply to them.
 *
 * Any thread may call. Collective calls on one trestleTopK_t run one at a time. A failure of the communicator ends each
 * with its code and sentence. A rank that has no memory to take part in a collective call ends the communicator, so that
 * the others do not wait for it. All ranks make the choices of rank 0 at the same step, and get the same bits. */
typedef struct trestleTopK* trestleTopK_t;

typedef enum TRESTLE_ANY_INT {
  trestleTopKAuto = 0,
  trestleTopKStar = 1,
  trestleTopKVar = 2,
  trestleTopKExact = 3,
  trestleTopKLayerwise = 4,
  trestleTopKMultiSampling = 5
} trestleTopKMethod_t;

/* By which collective. Any: the one that takes the least time according to Table I and the rules 5a to 5c of FLEX, with
 * the present costs of the links. Star and Var have ring and tree to choose from, and Auto all three. The other methods
 * have only the all-gather. */
typedef enum TRESTLE_ANY_INT {
  trestleTopKAny = 0,
  trestleTopKRing = 1,
  trestleTopKTree = 2,
  trestleTopKAllGather = 3
} trestleTopKCollective_t;

typedef enum TRESTLE_ANY_INT {
  trestleTopKWeighted = 0, /* least of the largest weighted objective, as the authors' code */
  trestleTopKKnee = 1      /* least sum of the objectives, as the paper's text */
} trestleTopKRatioRule_t;

#define TRESTLE_TOP_K_CONFIG_MAGIC 0x7e571e09u

/* Append-only, as trestleConfig_t; without padding, so that a new field never lies where an older program's config
 * ended. Everything must be the same on all ranks. */
typedef struct {
  size_t size;           /* sizeof(trestleTopKConfig_t) */
  unsigned magic;        /* TRESTLE_TOP_K_CONFIG_MAGIC */
  unsigned version;      /* TRESTLE_VERSION_CODE */
  int method;            /* of trestleTopKMethod_t */
  int collective;        /* of trestleTopKCollective_t */
  int op;                /* trestleAvg (default) or trestleSum */
  int type;              /* of trestleDataType_t, the elements of gradient and result: trestleFloat32 (default),
                            trestleFloat16, trestleBfloat16 or trestleFloat64 */
  double ratio;          /* above 0 and at most 1; 0 (default): chosen by the objectives below. Then ten steps measure the
                            candidates 0.1, 0.033, 0.011, 0.004 and 0.001, while 0.1 is used, and whenever the gain has
                            changed by a tenth, ten more */
  size_t elements;       /* k itself, up to the length; 0: by ratio. Not with Layerwise */
  double startup;        /* seconds before a message of any size, and */
  double perByte;        /* per byte of it, between two ranks. Both below 0 (default): TopKCreate measures them if a choice
                            depends on them, and every exchange keeps them up to date */
  const size_t* layers;  /* of Layerwise: the layers' lengths, whose sum is the gradient's. Read before Create returns */
  size_t layerCount;
  uint64_t steps;        /* that were made before, for a program that continues: Star counts them. The residual is the
                            program's to keep */
  int reviewSteps;       /* after so many steps (20) the ranks compare gains and times, by two small all-reduces, and choose
                            again. 1 to 1000 */
  int ratioRule;         /* of trestleTopKRatioRule_t: how a ratio is chosen (FLEX, section 4). The objectives are the time of
                            the cheapest collective, 1 / gain and the time to select, each scaled to 0 .. 1 */
  double timeWeight;     /* of Weighted: 0.6 */
  double gainWeight;     /* of Weighted: 0.4 */
  double compressWeight; /* of Weighted: 0. For Knee: whether the time to select counts */
} trestleTopKConfig_t;

#define TRESTLE_TOP_K_CONFIG_INITIALIZER                                                                                  \
  { sizeof(trestleTopKConfig_t), TRESTLE_TOP_K_CONFIG_MAGIC, TRESTLE_VERSION_CODE, trestleTopKAuto, trestleTopKAny,       \
        trestleAvg, trestleFloat32, 0, 0, -1, -1, NULL, 0, 0, 20, trestleTopKWeighted, 0.6, 0.4, 0                        \
  }

/* For gradients of `count` elements of the config's type (float32), 0 to 2^32. config may be NULL; it is read before the
 * call returns. The communicator must outlive it. If the ranks' arguments differ, all get trestleInvalidUsage, with the
 * rank, the field and both values. If one rank's are wrong, it gets the sentence and the others its code and its rank. */
TRESTLE_API trestleResult_t trestleTopKCreate(trestleTopK_t* topk, trestleComm_t comm, size_t count,
                                              const trestleTopKConfig_t* config);
/* Waits for a call of another thread, then frees. Not collective. */
TRESTLE_API trestleResult_t trestleTopKDestroy(trestleTopK_t topk);

/* One step. gradient, residual, result: `count` elements each, of the program, aligned for their types, in host memory,
 * pinned or managed memory included (where the communicator has a device, memory of devices is trestleInvalidArgument);
 * result may be equal to gradient, nothing else may overlap. residual: zeros before the first step, then what the last step left
 * there. result: the mean (or the sum) over the ranks of what each sent, 0 where no rank sent anything.
 *
 * The gradient and the result have the config's type. The residual of float16 and bfloat16 gradients is float32: 16 bits
 * would round away gradients that are small beside the residual. Their sums, means, magnitudes and messages are
 * float32 too, and only the result is rounded, once. Of a mean of n ranks, each value is multiplied by 1/n before it is
 * added. Else the residual has the gradient's type. Values of float64 travel whole.
 *
 * residual becomes gradient + residual, and then 0 at the elements that this rank sent. Of equal magnitudes the element
 * with the lower number is sent. A NaN is larger than all numbers: it travels as soon as this rank names the elements,
 * spoils the result there, and is gone from the residual. It is counted.
 *
 * A call that is refused for its arguments changes nothing and sends nothing: the other ranks wait until this rank makes
 * it again. If the call fails, the residual has the whole gradient, the result is unspecified, and the step does not
 * count. If one rank has no memory to select its elements, all ranks get trestleSystemError, with that rank, and the
 * communicator goes on: the next step sends what this one did not. A rank that cannot send a message for want of memory
 * ends the communicator. */
TRESTLE_API trestleResult_t trestleAllReduceTopK(const void* gradient, void* residual, void* result, trestleTopK_t topk);

/* Collective. Measures the costs of the links by messages of its own, some tens of milliseconds, and chooses anew. From
 * then on costs that the config gave do not count. */
TRESTLE_API trestleResult_t trestleTopKFit(trestleTopK_t topk);
/* Collective. From the next step on this ratio, above 0 and at most 1; no other one is chosen any more. */
TRESTLE_API trestleResult_t trestleTopKSetRatio(trestleTopK_t topk, double ratio);

/* What was measured with one ratio. FLEX takes means over ten iterations of each, from a checkpoint of the model. */
typedef struct {
  double ratio;   /* above 0 and at most 1 */
  double gain;    /* as trestleTopKStats_t's; positive */
  double seconds; /* to select; not negative */
} trestleTopKSample_t;

/* Writes the ratio that the config's objectives name, given the samples and the present costs of the links; between
 * samples it interpolates, linearly in the logarithm of the ratio. Not collective; changes nothing. To use it, give rank
 * 0's to trestleTopKSetRatio on all ranks. Waits for a call of another thread. */
TRESTLE_API trestleResult_t trestleTopKChooseRatio(trestleTopK_t topk, const trestleTopKSample_t* samples, int count,
                                                   double* ratio);

#define TRESTLE_TOP_K_STATS_MAGIC 0x7e571e0au

/* Append-only: `size` says how much of it the caller knows. */
typedef struct {
  size_t size;          /* sizeof(trestleTopKStats_t) */
  unsigned magic;       /* TRESTLE_TOP_K_STATS_MAGIC */
  unsigned version;     /* TRESTLE_VERSION_CODE */
  uint64_t steps;       /* that are complete, with the config's `steps` */
  /* The present choice, as far as the next step does not review it: */
  int method;           /* never trestleTopKAuto */
  int collective;       /* never trestleTopKAny */
  uint64_t elements;    /* that each rank sends: k */
  double ratio;
  int measures;         /* 1: the candidates are being measured */
  /* The last step: */
  int root;             /* the rank that named the elements; -1: each rank did */
  double gain;          /* |what this rank sent|^2 / |gradient + residual|^2; 1 for zeros */
  double meanGain;      /* over the ranks, and over the steps before the last review; 0: there was none */
  uint64_t lastNans;    /* elements of this rank's gradient that were not a number */
  /* Since trestleTopKCreate: */
  uint64_t nans;
  uint64_t sent;        /* elements that this rank sent */
  uint64_t compressNs;  /* time to select and to add up, without any message */
  uint64_t exchangeNs;  /* time of messages, with the wait for other ranks; those of reviews too */
  uint64_t changes;     /* of ratio, method or collective */
  uint64_t gainChanges; /* reviews that found the gain changed by a tenth (mean of five steps) */
  uint64_t linkChanges; /* reviews that found startup or bandwidth changed by a twentieth */
  double startup;       /* present costs; 0: not known */
  double perByte;
} trestleTopKStats_t;

#define TRESTLE_TOP_K_STATS_INITIALIZER                                                                                   \
  { sizeof(trestleTopKStats_t), TRESTLE_TOP_K_STATS_MAGIC, TRESTLE_VERSION_CODE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
        0, 0, 0, 0, 0, 0                                                                                                  \
  }

/* Fills in as much of *stats as its size says. Never waits. */
TRESTLE_API trestleResult_t trestleTopKGetStats(trestleTopK_t topk, trestleTopKStats_t* stats);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_COMPRESS_H_ */
