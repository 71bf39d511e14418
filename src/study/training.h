// The paper's end-to-end study: time per training iteration of each workload on each system, under every policy and
// with an ideal network, beside the paper's results (Themis, arXiv 2110.04478, section 6.2). In the paper's model.
// Pure, any thread; equal requests give equal studies.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gradient/layers/iteration.h"
#include "gradient/layers/layer_networks.h"
#include "study/paper_systems.h"

namespace trestle {

struct TrainingRequest {
  std::vector<NamedTopology> systems;  // empty: the paper's six
  std::string workload;                // name; "": all
  Accelerator accelerator;
  GradientOverlap overlap = GradientOverlap::kNone;
  uint32_t samples = 0;  // per pass; 0: the workload's own
  uint32_t chunks = 64;
};

// The time of one variant on one network.
struct TrainingTime {
  IterationTime iteration;
  double speedup = 1;  // over the baseline
};

struct SystemTraining {
  std::string system;
  std::vector<TrainingTime> times;  // per entry of TrainingStudy::variants
};

// A mean over the systems.
struct TrainingMean {
  double speedup = 1;
  double most_speedup = 1;   // largest of one system
  double exposed_share = 0;  // fraction of the iteration
};

struct WorkloadTraining {
  const Workload* workload = nullptr;
  uint32_t samples = 0;
  std::string refused;  // why there is no result, as a sentence; empty: there is one
  double compute_ns = 0;
  std::vector<SystemTraining> systems;
  std::vector<TrainingMean> means;  // per variant
  // Only with the paper's systems: scaling all compute by this factor gives the paper's mean ideal speed-up. So the
  // comparison does not depend on the compute times, which the paper does not give. Nothing if no factor achieves it.
  std::optional<double> fitted_scale;
  std::vector<TrainingMean> fitted;  // `means` with that factor
};

struct TrainingStudy {
  std::vector<std::string> variants;  // names of policies, the baseline first; the last one is "ideal"
  Accelerator accelerator;
  GradientOverlap overlap = GradientOverlap::kNone;
  uint32_t chunks = 0;
  bool papers_systems = false;  // the systems are the paper's, so its results can be compared
  std::vector<WorkloadTraining> workloads;
};

// Errors (kInvalidArgument): an unknown workload, an accelerator without speed, no chunks, samples for several
// workloads at once, a system that the model refuses.
Result<TrainingStudy> study_training(const TrainingRequest& request);

}  // namespace trestle
