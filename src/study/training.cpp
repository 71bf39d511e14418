#include "study/training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "sched/policy/policies.h"
#include "study/model_split.h"
#include "study/paper.h"
#include "study/paper_systems.h"

namespace trestle {
namespace {

constexpr const char* kIdeal = "ideal";

// Times of all-reduces on one system. Each one is planned once per policy.
class Collectives {
 public:
  Collectives(const std::vector<std::string>& variants, uint32_t chunks) : variants_(variants), chunks_(chunks) {}

  // Nanoseconds per variant.
  Result<std::vector<double>> all_reduce(const Topology& topology, uint64_t bytes) {
    if (topology.dimensions.empty()) return std::vector<double>(variants_.size(), 0);
    const auto key = std::make_tuple(hash(topology), bytes);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    std::vector<double> times;
    double ideal_ns = 0;
    for (const std::string& variant : variants_) {
      if (variant == kIdeal) {
        times.push_back(ideal_ns);
        continue;
      }
      PaperCase paper_case;
      paper_case.topology = topology;
      paper_case.bytes = bytes;
      paper_case.chunks = chunks_;
      paper_case.policy = variant;
      const PaperResult result = TRY(run_paper(paper_case));
      if (times.empty()) ideal_ns = result.ideal_time_ns;
      times.push_back(result.time.ns());
    }
    return known_[key] = times;
  }

 private:
  const std::vector<std::string>& variants_;
  const uint32_t chunks_;
  std::map<std::tuple<uint64_t, uint64_t>, std::vector<double>> known_;
};

// Communication times of one system: per variant the nanoseconds of each step.
struct Communication {
  std::string system;
  std::vector<std::vector<double>> step_ns;  // [variant][step]
};

Result<Communication> communicate(const NamedTopology& system, const Workload& workload,
                                  const std::vector<TrainingStep>& steps, size_t variants, Collectives& collectives) {
  const ModelSplit split = TRY(split_model_ranks(system.topology, workload.model_ranks));
  Communication communication{system.name, std::vector<std::vector<double>>(variants)};
  for (const TrainingStep& step : steps) {
    std::vector<double> times(variants, 0);
    if (step.kind == TrainingStepKind::kActivations) times = TRY(collectives.all_reduce(split.model, step.bytes));
    if (step.kind == TrainingStepKind::kGradients) times = TRY(collectives.all_reduce(split.data, step.bytes));
    if (step.kind == TrainingStepKind::kExchange) times.assign(variants, exchange_ns(system.topology, step.bytes));
    for (size_t v = 0; v < variants; ++v) communication.step_ns[v].push_back(times[v]);
  }
  return communication;
}

SystemTraining replay_all(const Communication& communication, const std::vector<TrainingStep>& steps, double scale) {
  SystemTraining training{communication.system, {}};
  for (const std::vector<double>& step_ns : communication.step_ns) {
    TrainingTime time{replay(steps, step_ns, scale), 1};
    if (!training.times.empty()) time.speedup = training.times.front().iteration.time_ns / time.iteration.time_ns;
    training.times.push_back(time);
  }
  return training;
}

std::vector<TrainingMean> means_of(const std::vector<SystemTraining>& systems, size_t variants) {
  std::vector<TrainingMean> means(variants, {0, 0, 0});
  const auto count = static_cast<double>(systems.size());
  for (const SystemTraining& system : systems) {
    for (size_t v = 0; v < variants; ++v) {
      const TrainingTime& time = system.times[v];
      means[v].speedup += time.speedup / count;
      means[v].most_speedup = std::max(means[v].most_speedup, time.speedup);
      means[v].exposed_share += time.iteration.exposed_ns() / time.iteration.time_ns / count;
    }
  }
  return means;
}

std::vector<TrainingMean> scaled_means(const std::vector<Communication>& communications,
                                       const std::vector<TrainingStep>& steps, double scale) {
  std::vector<SystemTraining> systems;
  for (const Communication& each : communications) systems.push_back(replay_all(each, steps, scale));
  return means_of(systems, communications.front().step_ns.size());
}

// Bisects the logarithm of the factor: with more compute the network matters less.
void fit_compute(const std::vector<Communication>& communications, const std::vector<TrainingStep>& steps,
                 WorkloadTraining& training) {
  const double wanted = training.workload->paper.ideal;
  double low = -7;
  double high = 7;
  const auto ideal_at = [&](double logarithm) {
    return scaled_means(communications, steps, std::exp(logarithm)).back().speedup;
  };
  if (ideal_at(low) < wanted || ideal_at(high) > wanted) return;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (ideal_at(middle) > wanted ? low : high) = middle;
  }
  training.fitted_scale = std::exp(low);
  training.fitted = scaled_means(communications, steps, *training.fitted_scale);
}

Result<WorkloadTraining> study_workload(const TrainingRequest& request, const std::vector<NamedTopology>& systems,
                                        const Workload& own, const std::vector<std::string>& variants) {
  Workload workload = own;
  if (request.samples > 0) workload.samples = request.samples;
  WorkloadTraining training;
  training.workload = &own;
  training.samples = workload.samples;
  const std::vector<TrainingStep> steps = training_steps(workload, request.accelerator, request.overlap);
  for (const TrainingStep& step : steps) training.compute_ns += step.compute_ns;
  std::vector<Communication> communications;
  for (const NamedTopology& system : systems) {
    const auto split = split_model_ranks(system.topology, workload.model_ranks);
    if (!split.ok()) {
      training.refused = system.name + ": " + split.error().message;
      return training;
    }
    Collectives collectives(variants, request.chunks);
    communications.push_back(TRY(communicate(system, workload, steps, variants.size(), collectives)));
    training.systems.push_back(replay_all(communications.back(), steps, 1));
  }
  training.means = means_of(training.systems, variants.size());
  if (request.systems.empty()) fit_compute(communications, steps, training);
  return training;
}

bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

Status check(const TrainingRequest& request) {
  const Accelerator& accelerator = request.accelerator;
  if (!positive(accelerator.peak_tflops)) return invalid_argument("an accelerator's speed must be above 0");
  if (!positive(accelerator.memory_gbytes))
    return invalid_argument("an accelerator's memory bandwidth must be above 0");
  if (!positive(accelerator.attained) || accelerator.attained > 1) {
    return invalid_argument("the attained fraction of the speed must be above 0 and at most 1");
  }
  if (request.samples > 0 && request.workload.empty())
    return invalid_argument("a batch size needs one workload: name it");
  for (const NamedTopology& system : request.systems) {
    for (const Dimension& dimension : system.topology.dimensions) {
      if (dimension.bandwidth_mbps == 0) return invalid_argument(system.name + ": every dimension needs a bandwidth");
    }
  }
  return {};
}

Result<std::vector<const Workload*>> chosen(const std::string& name) {
  if (!name.empty()) return std::vector<const Workload*>{TRY(row_named(workloads(), name, "a workload"))};
  std::vector<const Workload*> all;
  for (const Workload& workload : workloads()) all.push_back(&workload);
  return all;
}

}  // namespace

Result<TrainingStudy> study_training(const TrainingRequest& request) {
  TRY(check(request));
  const std::vector<const Workload*> wanted = TRY(chosen(request.workload));
  const std::vector<NamedTopology> systems = request.systems.empty() ? named_paper_systems() : request.systems;
  TrainingStudy study;
  for (const Policy& policy : policies()) study.variants.emplace_back(policy.name);
  study.variants.emplace_back(kIdeal);
  study.accelerator = request.accelerator;
  study.overlap = request.overlap;
  study.chunks = request.chunks;
  study.papers_systems = request.systems.empty();
  for (const Workload* workload : wanted) {
    study.workloads.push_back(TRY(study_workload(request, systems, *workload, study.variants)));
  }
  return study;
}

}  // namespace trestle
