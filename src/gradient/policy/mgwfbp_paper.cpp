#include "gradient/policy/mgwfbp_paper.h"

#include <algorithm>

namespace trestle {

GradientPlan plan_mgwfbp_paper(const GradientWorkload& workload, const MessageCost& cost) {
  const std::vector<double> ready = workload.ready_s();
  GradientPlan plan;
  auto last = static_cast<uint32_t>(ready.size() - 1);
  uint64_t bytes = 0;  // of the tensors l .. last
  double channel = 0;
  for (uint32_t l = last; l > 0; --l) {
    bytes += workload.tensors[l].bytes;
    channel = std::max(channel, ready[l]);
    if (ready[l - 1] - channel < cost.startup_s) continue;
    channel += cost.of(bytes);
    bytes = 0;
    plan.groups.push_back({l, last});
    last = l - 1;
  }
  plan.groups.push_back({0, last});
  std::reverse(plan.groups.begin(), plan.groups.end());
  return plan;
}

}  // namespace trestle
