/* Gradient descent with a compressed all-reduce: a twentieth of each gradient travels, the rest is kept for later. Each
 * rank has a target of its own, and the parameters go to the mean of all targets, as with whole gradients.
 *
 *   trestle run -n 4 -- ./top_k
 */
#include <math.h>
#include <trestle/compress.h>

#include "must.h"

enum { kParameters = 2000, kSteps = 400 };

static float parameters[kParameters], targets[kParameters], gradient[kParameters], residual[kParameters];

/* Numbers from -1 to 1, on all machines the same. */
static float number(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* Writes the gradient. Returns the loss, as a mean over the ranks. */
static double compute(trestleComm_t comm) {
  double loss = 0;
  for (int i = 0; i < kParameters; ++i) {
    gradient[i] = parameters[i] - targets[i];
    loss += 0.5 * gradient[i] * gradient[i];
  }
  MUST(trestleAllReduce(&loss, &loss, 1, trestleFloat64, trestleAvg, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  return loss;
}

/* Returns the last loss. topk NULL: with whole gradients. */
static double train(trestleComm_t comm, trestleTopK_t topk) {
  for (int i = 0; i < kParameters; ++i) parameters[i] = residual[i] = 0;
  for (int step = 0; step < kSteps; ++step) {
    (void)compute(comm);
    if (topk != NULL) {
      MUST(trestleAllReduceTopK(gradient, residual, gradient, topk), comm);
    } else {
      MUST(trestleAllReduce(gradient, gradient, kParameters, trestleFloat32, trestleAvg, comm, NULL), comm);
      MUST(trestleCommSynchronize(comm), comm);
    }
    for (int i = 0; i < kParameters; ++i) parameters[i] -= 0.02f * gradient[i];
  }
  return compute(comm);
}

int main(void) {
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
  trestleTopK_t topk = NULL;
  unsigned state = 1u + (unsigned)rank;
  double whole, compressed;

  for (int i = 0; i < kParameters; ++i) targets[i] = 1.0f + number(&state);
  config.ratio = 0.05;
  config.method = trestleTopKStar;
  MUST(trestleTopKCreate(&topk, comm, kParameters, &config), comm);
  whole = train(comm, NULL);
  compressed = train(comm, topk);
  MUST(trestleTopKGetStats(topk, &stats), comm);
  if (rank == 0) {
    printf("%d steps: loss %.3f with whole gradients, %.3f with %llu of %d elements each (gain %.2f, by %s)\n", kSteps,
           whole, compressed, (unsigned long long)stats.elements, kParameters, stats.meanGain,
           stats.collective == trestleTopKRing ? "ring" : "tree");
  }
  EXPECT(stats.steps == kSteps && stats.nans == 0);
  EXPECT(fabs(compressed - whole) < 0.02 * whole);
  MUST(trestleTopKDestroy(topk), comm);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
