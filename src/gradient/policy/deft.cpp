#include "gradient/policy/deft.h"

#include <algorithm>

#include "gradient/deft/simulate.h"
#include "gradient/policy/threshold.h"

namespace trestle {
namespace {

constexpr uint32_t kIterations = 400;  // the queues' cycles are much shorter

}  // namespace

Result<PlannedStep> plan_deft(const PolicyRequest& request) {
  PlannedStep step;
  step.plan.groups = plan_threshold(request.workload, request.arguments.bytes).groups;
  step.plan.shape = StepShape::kDelayed;
  const DeftSystem system{deft_buckets(request.workload, step.plan.groups, request.link.all_reduce), {DeftLink{}}};
  const DeftRun run = TRY(simulate_deft(system, kIterations));
  const double compute_s = static_cast<double>(forward_us(system.buckets) + backward_us(system.buckets)) / 1e6;
  step.time.iteration_s = run.iteration_us() / 1e6;
  step.time.exposed_s = std::max(0.0, step.time.iteration_s - compute_s);
  step.time.backward_start_s = static_cast<double>(forward_us(system.buckets)) / 1e6;
  step.updates_per_iteration = run.updates_per_iteration();
  for (const DeftUpdate& update : run.updates) step.age = std::max(step.age, update.oldest_age);
  step.batches = TRY(deft_cycle(system));
  return step;
}

}  // namespace trestle
