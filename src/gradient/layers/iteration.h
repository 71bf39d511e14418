// One training iteration of a workload as steps of compute and communication, and how long it takes. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradient/layers/layer_networks.h"

namespace trestle {

// Roofline model (Williams, Waterman, Patterson, "Roofline", CACM 2009): an operation takes the longer of its
// arithmetic and its memory traffic.
struct Accelerator {
  double peak_tflops = 312;  // 10^12 operations per second; A100 in half precision, NVIDIA's data sheet
  // Fraction of the peak that matrix products reach. An assumption.
  double attained = 0.75;
  double memory_gbytes = 2039;  // 10^9 bytes per second; A100 with 80 GB, the same data sheet
};

// Nanoseconds of a layer on one rank. `weight`: 1 forward, 2 backward.
double roofline_ns(const WorkloadLayer& layer, const Workload& workload, const Accelerator& accelerator, double weight);

enum class GradientOverlap : uint8_t {
  kNone,  // one all-reduce after the backward pass
  // Layers in backward order. An all-reduce starts as soon as they have kBucketBytes, during the backward pass.
  kBuckets,
};
// The default of PyTorch's DistributedDataParallel.
inline constexpr uint64_t kBucketBytes = uint64_t{25} << 20;

enum class TrainingStepKind : uint8_t {
  kCompute,
  kGradients,      // starts an all-reduce over the ranks that have the same weights, after the previous ones
  kActivations,    // an all-reduce over the ranks that share a model; compute waits
  kExchange,       // starts an all-to-all over all ranks, after everything started before
  kAwaitExchange,  // compute waits for the last all-to-all
};

struct TrainingStep {
  TrainingStepKind kind = TrainingStepKind::kCompute;
  double compute_ns = 0;
  uint64_t bytes = 0;  // of each rank's buffer
  bool operator==(const TrainingStep&) const = default;
};

std::vector<TrainingStep> training_steps(const Workload& workload, const Accelerator& accelerator,
                                         GradientOverlap overlap);

struct IterationTime {
  double time_ns = 0;
  double compute_ns = 0;
  double exposed_ns() const { return time_ns - compute_ns; }  // communication that no compute hides
};

// communication_ns: one entry per step, used for steps that communicate. Compute takes compute_scale times as long as
// the steps say.
IterationTime replay(std::span<const TrainingStep> steps, std::span<const double> communication_ns,
                     double compute_scale = 1);

}  // namespace trestle
