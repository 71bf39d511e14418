#include "gradient/policy/optimal.h"

#include <algorithm>
#include <limits>

#include "gradient/copies.h"

namespace trestle {

GradientPlan plan_optimal(const GradientWorkload& workload, const MessageCost& cost, double copy_per_byte_s) {
  const std::vector<double> ready_s = workload.ready_s();
  const MessageCopies copies(workload);
  const size_t tensors = ready_s.size();
  std::vector<double> end_s(tensors + 1, 0);
  std::vector<uint32_t> last(tensors, 0);
  for (size_t l = tensors; l-- > 0;) {
    double least = std::numeric_limits<double>::infinity();
    uint64_t sum = 0;
    for (size_t k = l; k < tensors; ++k) {
      sum += workload.tensors[k].bytes;
      const TensorGroup group{static_cast<uint32_t>(l), static_cast<uint32_t>(k)};
      const uint32_t times = copies.of(MessageKind::kAllReduce, group, false);
      const double message_s = with_copies(cost, copy_per_byte_s, times).of(sum);
      if (ready_s[l] + message_s >= least) break;  // with more tensors the message only gets longer
      const double end = std::max(end_s[k + 1], ready_s[l]) + message_s;
      if (end >= least) continue;
      least = end;
      last[l] = static_cast<uint32_t>(k);
    }
    end_s[l] = least;
  }
  GradientPlan plan;
  for (uint32_t l = 0; l < tensors; l = last[l] + 1) plan.groups.push_back({l, last[l]});
  return plan;
}

}  // namespace trestle
