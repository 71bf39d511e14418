/* Data-parallel training of a small network on data that every rank makes from a formula. The scheduler of gradients
 * decides what travels when, and updates each parameter on the rank that has its shard.
 *
 *   trestle run -n 4 -- ./train_mlp                     all policies below; rank 0 prints the losses as CSV
 *   trestle run -n 4 -- ./train_mlp split_optimal:free  this one
 */
#include <math.h>
#include <string.h>
#include <trestle/gradient.h>

#include "must.h"

enum { kInputs = 8, kHidden = 24, kSamples = 64, kSteps = 120, kTensors = 4, kPolicies = 3 };

static const char* const policies[kPolicies] = {"wfbp", "split_optimal:shared", "split_optimal:free"};
static const size_t counts[kTensors] = {kInputs * kHidden, kHidden, kHidden, 1};
static const char* const names[kTensors] = {"hidden.weight", "hidden.bias", "output.weight", "output.bias"};
static float weights[kTensors][kInputs * kHidden], gradients[kTensors][kInputs * kHidden];
static float inputs[kSamples][kInputs], targets[kSamples];

/* Numbers from -1 to 1, on all machines the same. */
static float number(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void start(int rank) {
  unsigned model = 1, data = 100u + (unsigned)rank; /* the same parameters, other samples */
  for (int t = 0; t < kTensors; ++t) {
    for (size_t i = 0; i < counts[t]; ++i) weights[t][i] = 0.5f * number(&model);
  }
  for (int s = 0; s < kSamples; ++s) {
    float sum = 0;
    for (int i = 0; i < kInputs; ++i) sum += inputs[s][i] = number(&data);
    targets[s] = tanhf(sum) + 0.5f;
  }
}

/* Gradient descent on a shard: what the scheduler calls with the mean gradient. */
static void descend(void* context, int tensor, size_t offset, size_t count, const void* gradient, void* parameter) {
  const float rate = *(const float*)context;
  const float* g = gradient;
  float* w = parameter;
  (void)tensor;
  (void)offset;
  for (size_t i = 0; i < count; ++i) w[i] -= rate * g[i];
}

/* Waits until a parameter is updated. Until then its gradient's memory is in use too. */
static void wait_for(trestleGrad_t grad, trestleComm_t comm, int tensor, int first) {
  if (!first) MUST(trestleGradWaitParam(grad, tensor), comm);
  memset(gradients[tensor], 0, sizeof gradients[tensor]);
}

/* The forward and the backward pass. Tensors 0 and 1 are of the hidden layer, 2 and 3 of the output. */
static double step(trestleGrad_t grad, trestleComm_t comm, int first) {
  static float hidden[kSamples][kHidden], slopes[kSamples][kHidden], errors[kSamples];
  double loss = 0;
  for (int t = 0; t < 2; ++t) wait_for(grad, comm, t, first);
  for (int s = 0; s < kSamples; ++s) {
    for (int h = 0; h < kHidden; ++h) {
      float sum = weights[1][h];
      for (int i = 0; i < kInputs; ++i) sum += weights[0][h * kInputs + i] * inputs[s][i];
      hidden[s][h] = tanhf(sum);
    }
  }
  for (int t = 2; t < kTensors; ++t) wait_for(grad, comm, t, first);
  for (int s = 0; s < kSamples; ++s) {
    float output = weights[3][0];
    for (int h = 0; h < kHidden; ++h) output += weights[2][h] * hidden[s][h];
    errors[s] = output - targets[s];
    loss += 0.5 * errors[s] * errors[s] / kSamples;
    gradients[3][0] += errors[s] / kSamples;
    for (int h = 0; h < kHidden; ++h) gradients[2][h] += errors[s] * hidden[s][h] / kSamples;
  }
  for (int s = 0; s < kSamples; ++s) {
    for (int h = 0; h < kHidden; ++h)
      slopes[s][h] = errors[s] * weights[2][h] * (1 - hidden[s][h] * hidden[s][h]) / kSamples;
  }
  /* Not before: the scheduler may update weights[2] from here on, while the hidden layer's gradients are computed. */
  MUST(trestleGradReady(grad, 3, NULL), comm);
  MUST(trestleGradReady(grad, 2, NULL), comm);
  for (int s = 0; s < kSamples; ++s) {
    for (int h = 0; h < kHidden; ++h) {
      gradients[1][h] += slopes[s][h];
      for (int i = 0; i < kInputs; ++i) gradients[0][h * kInputs + i] += slopes[s][h] * inputs[s][i];
    }
  }
  MUST(trestleGradReady(grad, 1, NULL), comm);
  MUST(trestleGradReady(grad, 0, NULL), comm);
  MUST(trestleGradStepEnd(grad), comm);
  return loss;
}

/* Writes the mean loss over the ranks after each step. */
static void train(const char* policy, trestleComm_t comm, int rank, double* losses) {
  static const double forward[kTensors] = {20e-6, 0, 5e-6, 0}, backward[kTensors] = {40e-6, 0, 10e-6, 0};
  static const trestleGradCost_t whole = {20e-6, 1e-9}, half = {10e-6, 5e-10};
  float rate = 0.2f;
  int tensor;
  trestleGrad_t grad = NULL;
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.op = trestleAvg;
  config.update = descend;
  config.updateContext = &rate;
  MUST(trestleGradCreate(&grad, &comm, 1, &config), comm);
  for (int t = 0; t < kTensors; ++t)
    MUST(trestleGradRegister(grad, names[t], counts[t], trestleFloat32, gradients[t], weights[t], &tensor), comm);
  MUST(trestleGradSetTimes(grad, forward, backward, &whole, &half, &half), comm);
  MUST(trestleGradPlan(grad, policy), comm);
  start(rank);
  for (int s = 0; s < kSteps; ++s) losses[s] = step(grad, comm, s == 0);
  MUST(trestleGradSynchronize(grad), comm);
  MUST(trestleGradDestroy(grad), comm);
  MUST(trestleAllReduce(losses, losses, kSteps, trestleFloat64, trestleAvg, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
}

int main(int argc, char** argv) {
  static double losses[kPolicies][kSteps];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  const int several = argc < 2 ? kPolicies : 1;

  for (int p = 0; p < several; ++p) train(argc < 2 ? policies[p] : argv[1], comm, rank, losses[p]);
  if (rank == 0) {
    printf("step");
    for (int p = 0; p < several; ++p) printf(",%s", argc < 2 ? policies[p] : argv[1]);
    for (int s = 0; s < kSteps; s += 10) {
      printf("\n%d", s);
      for (int p = 0; p < several; ++p) printf(",%.6f", losses[p][s]);
    }
    printf("\n");
  }
  for (int p = 0; p < several; ++p) {
    EXPECT(losses[p][kSteps - 1] < 0.25 * losses[p][0]);
    /* The policies differ in the rounding of sums only. */
    EXPECT(fabs(losses[p][kSteps - 1] - losses[0][kSteps - 1]) < 1e-5 * losses[0][kSteps - 1]);
  }
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
