#include "gradient/policy/optimal.h"

#include <algorithm>
#include <limits>

namespace trestle {

std::vector<TensorGroup> optimal_groups(const std::vector<double>& ready_s, const std::vector<uint64_t>& bytes,
                                        const MessageCost& cost) {
  const size_t tensors = bytes.size();
  std::vector<double> end_s(tensors + 1, 0);
  std::vector<uint32_t> last(tensors, 0);
  for (size_t l = tensors; l-- > 0;) {
    double least = std::numeric_limits<double>::infinity();
    uint64_t sum = 0;
    for (size_t k = l; k < tensors; ++k) {
      sum += bytes[k];
      const double message_s = cost.of(sum);
      if (ready_s[l] + message_s >= least) break;  // with more tensors the message only gets longer
      const double end = std::max(end_s[k + 1], ready_s[l]) + message_s;
      if (end >= least) continue;
      least = end;
      last[l] = static_cast<uint32_t>(k);
    }
    end_s[l] = least;
  }
  std::vector<TensorGroup> groups;
  for (uint32_t l = 0; l < tensors; l = last[l] + 1) groups.push_back({l, last[l]});
  return groups;
}

GradientPlan plan_optimal(const GradientWorkload& workload, const MessageCost& cost) {
  std::vector<uint64_t> bytes;
  for (const GradientTensor& tensor : workload.tensors) bytes.push_back(tensor.bytes);
  GradientPlan plan;
  plan.groups = optimal_groups(workload.ready_s(), bytes, cost);
  return plan;
}

}  // namespace trestle
