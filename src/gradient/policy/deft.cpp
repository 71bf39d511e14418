#include "gradient/policy/deft.h"

#include <algorithm>
#include <cmath>

#include "gradient/copies.h"
#include "gradient/deft/simulate.h"
#include "gradient/policy/by_sizes.h"

namespace trestle {
namespace {

constexpr uint32_t kIterations = 400;  // usual cycles of the queues are much shorter

}  // namespace

Result<DeftSystem> deft_system(const StepPlanRequest& request, const std::vector<TensorGroup>& groups) {
  // Each gradient is added to a sum of its own, and the result is copied from there.
  const MessageCost cost = with_copies(request.link.all_reduce, request.link.copy_per_byte_s, 2);
  DeftSystem system{deft_buckets(request.workload, groups, cost), {DeftLink{}}};
  for (const double ratio : request.link_ratios) {
    if (!(ratio >= 1 && ratio <= kMostLinkRatio))
      return Error{Code::kInvalidArgument, "a further link takes from 1 to 1000 times as long as the first one"};
    system.links.push_back({static_cast<uint32_t>(std::llround(1000 * ratio))});
  }
  return system;
}

Result<PlannedStep> plan_deft(const StepPlanRequest& request) {
  PlannedStep step;
  step.plan.groups = plan_threshold(request.workload, request.arguments.bytes).groups;
  step.plan.shape = StepShape::kDelayed;
  const DeftSystem system = TRY(deft_system(request, step.plan.groups));
  step.plan.delayed = system;
  if (request.loss) {
    const PreserverReport report = TRY(preserve(system, *request.loss));
    step.plan.capacity_permille = report.capacity_permille;
    step.loss = report.last;
  }
  const uint32_t capacity = step.plan.capacity_permille;
  const DeftRun run = TRY(simulate_deft(system, kIterations, capacity));
  const double compute_s = static_cast<double>(forward_us(system.buckets) + backward_us(system.buckets)) / 1e6;
  step.time.iteration_s = run.iteration_us() / 1e6;
  step.time.exposed_s = std::max(0.0, step.time.iteration_s - compute_s);
  step.time.backward_start_s = static_cast<double>(forward_us(system.buckets)) / 1e6;
  step.updates_per_iteration = run.updates_per_iteration();
  for (const DeftUpdate& update : run.updates) step.age = std::max(step.age, update.oldest_age);
  step.batches = TRY(deft_cycle(system, capacity));
  return step;
}

}  // namespace trestle
