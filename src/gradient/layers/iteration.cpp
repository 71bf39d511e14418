#include "gradient/layers/iteration.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {
namespace {

// Steps in the order in which a rank executes them.
class StepList {
 public:
  StepList(const Workload& workload, const Accelerator& accelerator, GradientOverlap overlap)
      : workload_(workload), accelerator_(accelerator), overlap_(overlap) {}

  std::vector<TrainingStep> all() {
    const bool exchanges = workload_.parallelism == Parallelism::kTablesAndData;
    if (exchanges) {
      look_up();
      exchange();
    }
    for (size_t l = 0; l < workload_.layers.size(); ++l) {
      if (exchanges && l == workload_.exchange_before) await();
      pass(workload_.layers[l], 1);
    }
    for (size_t l = workload_.layers.size(); l-- > 0;) {
      pass(workload_.layers[l], 2);
      if (exchanges && l == workload_.exchange_before) exchange();
    }
    if (exchanges) await();
    start_gradients();
    return std::move(steps_);
  }

 private:
  void pass(const WorkloadLayer& layer, double weight) {
    for (uint64_t i = 0; i < layer.repeat; ++i) {
      steps_.push_back({TrainingStepKind::kCompute, roofline_ns(layer, workload_, accelerator_, weight), 0});
      if (layer.name == workload_.reduced_layer) reduce_activations();
      if (weight == 2) add_gradients(layer);
    }
  }

  void reduce_activations() {
    const uint64_t bytes = workload_.activations_reduced * workload_.samples * kElementBytes;
    for (uint32_t i = 0; i < workload_.reductions_per_layer; ++i) {
      steps_.push_back({TrainingStepKind::kActivations, 0, bytes});
    }
  }

  void add_gradients(const WorkloadLayer& layer) {
    waiting_bytes_ += layer.parameters * kElementBytes / workload_.model_ranks;
    if (overlap_ == GradientOverlap::kBuckets && waiting_bytes_ >= kBucketBytes) start_gradients();
  }

  void start_gradients() {
    if (waiting_bytes_ > 0) steps_.push_back({TrainingStepKind::kGradients, 0, waiting_bytes_});
    waiting_bytes_ = 0;
  }

  void look_up() {
    const uint64_t bytes = workload_.elements_looked_up * workload_.samples * kElementBytes;
    steps_.push_back({TrainingStepKind::kCompute, static_cast<double>(bytes) / accelerator_.memory_gbytes, 0});
  }
  void exchange() {
    steps_.push_back(
        {TrainingStepKind::kExchange, 0, workload_.elements_exchanged * workload_.samples * kElementBytes});
  }
  void await() { steps_.push_back({TrainingStepKind::kAwaitExchange, 0, 0}); }

  const Workload& workload_;
  const Accelerator& accelerator_;
  const GradientOverlap overlap_;
  std::vector<TrainingStep> steps_;
  uint64_t waiting_bytes_ = 0;
};

}  // namespace

double roofline_ns(const WorkloadLayer& layer, const Workload& workload, const Accelerator& accelerator,
                   double weight) {
  const double samples = weight * workload.samples / workload.model_ranks;
  const double operations = 2 * samples * static_cast<double>(layer.macs);
  const double elements = samples * static_cast<double>(layer.activations) +
                          weight * static_cast<double>(layer.parameters) / workload.model_ranks;
  return std::max(operations / (accelerator.peak_tflops * accelerator.attained * 1000),
                  elements * kElementBytes / accelerator.memory_gbytes);
}

std::vector<TrainingStep> training_steps(const Workload& workload, const Accelerator& accelerator,
                                         GradientOverlap overlap) {
  return StepList(workload, accelerator, overlap).all();
}

IterationTime replay(std::span<const TrainingStep> steps, std::span<const double> communication_ns,
                     double compute_scale) {
  CHECK(steps.size() == communication_ns.size(), "times of other steps");
  IterationTime iteration;
  double now_ns = 0;
  double network_free_ns = 0;
  double exchanged_ns = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    switch (steps[s].kind) {
      case TrainingStepKind::kCompute:
        now_ns += compute_scale * steps[s].compute_ns;
        iteration.compute_ns += compute_scale * steps[s].compute_ns;
        break;
      case TrainingStepKind::kActivations:
        now_ns += communication_ns[s];
        break;
      case TrainingStepKind::kGradients:
        network_free_ns = std::max(network_free_ns, now_ns) + communication_ns[s];
        break;
      case TrainingStepKind::kExchange:
        network_free_ns = exchanged_ns = std::max(network_free_ns, now_ns) + communication_ns[s];
        break;
      case TrainingStepKind::kAwaitExchange:
        now_ns = std::max(now_ns, exchanged_ns);
        break;
    }
  }
  iteration.time_ns = std::max(now_ns, network_free_ns);
  return iteration;
}

}  // namespace trestle
