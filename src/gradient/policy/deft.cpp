#include "gradient/policy/deft.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gradient/deft/simulate.h"
#include "gradient/policy/threshold.h"

namespace trestle {
namespace {

constexpr uint32_t kIterations = 400;  // the queues' cycles are much shorter

Result<std::vector<DeftLink>> links_of(const std::vector<double>& ratios) {
  if (ratios.empty()) return std::vector<DeftLink>{DeftLink{}};
  std::vector<DeftLink> links;
  for (const double ratio : ratios) {
    if (!(ratio >= 1 && ratio <= kMostLinkRatio)) {
      return Error{Code::kInvalidArgument, "a message on link " + std::to_string(links.size()) + " takes " +
                                               std::to_string(ratio) +
                                               " times as long as on link 0: from 1 to 1000, the fastest link first"};
    }
    links.push_back({static_cast<uint32_t>(std::llround(ratio * 1000))});
  }
  return links;
}

}  // namespace

Result<PlannedStep> plan_deft(const PolicyRequest& request) {
  PlannedStep step;
  step.plan.groups = plan_threshold(request.workload, request.arguments.bytes).groups;
  step.plan.shape = StepShape::kDelayed;
  step.plan.delayed.buckets = deft_buckets(request.workload, step.plan.groups, request.link.all_reduce);
  step.plan.delayed.links = TRY(links_of(request.link_ratios));
  const DeftSystem& system = step.plan.delayed;
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
