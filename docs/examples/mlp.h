/* For train_mlp.c: a network of three layers, and points of three noisy spirals that it tells apart. Every rank has
 * other points of the same spirals. All parameters lie together in memory, and so do all gradients, in the order of the
 * forward pass.
 */
#ifndef TRESTLE_EXAMPLES_MLP_H_
#define TRESTLE_EXAMPLES_MLP_H_

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { kInputs = 2, kHidden = 32, kClasses = 3, kLayers = 3, kTensors = 2 * kLayers };
enum { kSamples = 240, kBatch = 40 }; /* of each rank; in each step */
enum { kParameters = (kInputs + 1) * kHidden + (kHidden + 1) * kHidden + (kHidden + 1) * kClasses };

static const int widths[kLayers + 1] = {kInputs, kHidden, kHidden, kClasses};
static const char* const names[kTensors] = {"first.weight", "first.bias",    "second.weight",
                                            "second.bias",  "output.weight", "output.bias"};
static float parameters[kParameters], gradients[kParameters];
static float points[kSamples][kInputs];
static int classes[kSamples];
static float values[kLayers + 1][kSamples][kHidden]; /* what each layer gives for each sample of a pass */
static float slopes[kLayers + 1][kSamples][kHidden]; /* of the loss, by these */

/* What a pass tells of itself. A NULL function tells nothing. */
typedef struct {
  void (*before_layer)(void* context, int layer); /* of the forward pass: its parameters are read next */
  void (*after_layer)(void* context, int layer);  /* of the backward pass: its gradients are complete, and nothing in
                                                     this pass reads its parameters any more */
  void* context;
} Hooks;

/* Tensors 2l and 2l + 1 are the weight and the bias of layer l. */
static size_t count_of(int tensor) {
  const int layer = tensor / 2;
  return (size_t)widths[layer + 1] * (size_t)(tensor % 2 == 0 ? widths[layer] : 1);
}

static size_t offset_of(int tensor) {
  size_t offset = 0;
  for (int t = 0; t < tensor; ++t) offset += count_of(t);
  return offset;
}

/* Numbers from -1 to 1, on all machines the same. */
static float number(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* All ranks start with equal parameters, and each has points of its own. */
static void start(int rank) {
  unsigned model = 1, data = 100u + (unsigned)rank;
  for (int t = 0; t < kTensors; ++t) {
    const float scale = t % 2 == 0 ? 1.6f / sqrtf((float)widths[t / 2]) : 0;
    for (size_t i = 0; i < count_of(t); ++i) parameters[offset_of(t) + i] = scale * number(&model);
  }
  for (int s = 0; s < kSamples; ++s) {
    const float along = 0.55f + 0.45f * number(&data);
    const float angle = 2.0943951f * (float)(s % kClasses) + 4 * along + 0.5f * (number(&data) + number(&data));
    classes[s] = s % kClasses;
    points[s][0] = 2 * along * cosf(angle);
    points[s][1] = 2 * along * sinf(angle);
  }
}

/* One layer for `count` samples: tanh of a product, or for the last layer the product. */
static void compute_layer(int layer, int count) {
  const float* const weight = parameters + offset_of(2 * layer);
  const float* const bias = parameters + offset_of(2 * layer + 1);
  const int inputs = widths[layer];
  for (int s = 0; s < count; ++s) {
    for (int o = 0; o < widths[layer + 1]; ++o) {
      float sum = bias[o];
      for (int i = 0; i < inputs; ++i) sum += weight[o * inputs + i] * values[layer][s][i];
      values[layer + 1][s][o] = layer + 1 < kLayers ? tanhf(sum) : sum;
    }
  }
}

/* The forward pass over `count` samples from number `first` on. Returns the mean cross-entropy. */
static double forward(int first, int count, const Hooks* hooks) {
  double loss = 0;
  for (int s = 0; s < count; ++s) memcpy(values[0][s], points[first + s], sizeof points[0]);
  for (int layer = 0; layer < kLayers; ++layer) {
    if (hooks->before_layer != NULL) hooks->before_layer(hooks->context, layer);
    compute_layer(layer, count);
  }
  for (int s = 0; s < count; ++s) {
    float* const slope = slopes[kLayers][s];
    const float* const output = values[kLayers][s];
    float sum = 0;
    for (int c = 0; c < kClasses; ++c) sum += expf(output[c]);
    loss += log(sum) - output[classes[first + s]];
    for (int c = 0; c < kClasses; ++c)
      slope[c] = (expf(output[c]) / sum - (c == classes[first + s] ? 1.0f : 0.0f)) / (float)count;
  }
  return loss / count;
}

/* The backward pass over the samples of the last forward pass. Writes all gradients. */
static void backward(int count, const Hooks* hooks) {
  memset(gradients, 0, sizeof gradients);
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const float* const weight = parameters + offset_of(2 * layer);
    float* const by_weight = gradients + offset_of(2 * layer);
    float* const by_bias = gradients + offset_of(2 * layer + 1);
    const int inputs = widths[layer];
    for (int s = 0; s < count; ++s) {
      float by_input[kHidden] = {0};
      for (int o = 0; o < widths[layer + 1]; ++o) {
        const float slope = slopes[layer + 1][s][o];
        by_bias[o] += slope;
        for (int i = 0; i < inputs; ++i) by_weight[o * inputs + i] += slope * values[layer][s][i];
        for (int i = 0; i < inputs; ++i) by_input[i] += slope * weight[o * inputs + i];
      }
      for (int i = 0; i < inputs; ++i)
        slopes[layer][s][i] = by_input[i] * (1 - values[layer][s][i] * values[layer][s][i]);
    }
    if (hooks->after_layer != NULL) hooks->after_layer(hooks->context, layer);
  }
}

#endif
