// The paper's end-to-end study: time per training iteration of each workload on each system under every policy and with
// an ideal network (Themis, arXiv 2110.04478, section 6.2), beside what the paper reports. In the paper's model. Pure,
// any thread; equal requests give equal studies.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/iteration.h"
#include "study/workloads.h"
#include "topology/topology.h"

namespace trestle {

struct NamedTopology {
  std::string name;
  Topology topology;  // every dimension with its bandwidth
};

struct TrainingRequest {
  std::vector<NamedTopology> systems;  // none: the paper's six
  std::string workload;                // by name; "": all
  Accelerator accelerator;
  GradientOverlap overlap = GradientOverlap::kNone;
  uint32_t samples = 0;  // per pass, instead of the workload's own; 0: its own
  uint32_t chunks = 64;
};

// Of one network under one way to use it.
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
  double most_speedup = 1;   // of one system
  double exposed_share = 0;  // of the iteration
};

struct WorkloadTraining {
  const Workload* workload = nullptr;
  uint32_t samples = 0;
  std::string refused;  // why there is no result: a sentence; empty: there is
  double compute_ns = 0;
  std::vector<SystemTraining> systems;
  std::vector<TrainingMean> means;  // per variant
  // On the paper's systems: the same with all compute scaled by one factor, such that the mean ideal speed-up is the
  // paper's: then the only thing that is not known is out of the comparison. Nothing where no factor does that.
  std::optional<double> fitted_scale;
  std::vector<TrainingMean> fitted;  // per variant
};

struct TrainingStudy {
  std::vector<std::string> variants;  // names of policies, the baseline first; the last one is "ideal"
  Accelerator accelerator;
  GradientOverlap overlap = GradientOverlap::kNone;
  uint32_t chunks = 0;
  bool papers_systems = false;  // what the paper reports can be compared
  std::vector<WorkloadTraining> workloads;
};

// Errors (kInvalidArgument): an unknown workload, an accelerator without speed, no chunks, samples for several
// workloads at once, a system that the model refuses.
Result<TrainingStudy> study_training(const TrainingRequest& request);

}  // namespace trestle
