#include "study/model_split.h"

#include <algorithm>
#include <string>

namespace trestle {

Result<ModelSplit> split_model_ranks(const Topology& topology, uint32_t model_ranks) {
  ModelSplit split;
  auto wanted = static_cast<int32_t>(model_ranks);
  for (const Dimension& dimension : topology.dimensions) {
    const int32_t inner = std::min(wanted, dimension.size);
    if (inner < 1 || dimension.size % inner != 0 || wanted % inner != 0) break;
    wanted /= inner;
    Dimension part = dimension;
    part.size = inner;
    if (part.size > 1) split.model.dimensions.push_back(part);
    part.size = dimension.size / inner;
    if (part.size > 1) split.data.dimensions.push_back(part);
  }
  if (wanted != 1) {
    return Error{Code::kInvalidArgument, "a model on " + std::to_string(model_ranks) +
                                             " ranks does not fit the dimensions: the inner ones must multiply to "
                                             "that, or one more must be divisible by the rest"};
  }
  return split;
}

double exchange_ns(const Topology& topology, uint64_t bytes) {
  double slowest_ns = 0;
  double latencies_ns = 0;
  for (const Dimension& dimension : topology.dimensions) {
    const auto size = static_cast<uint64_t>(dimension.size);
    const bool ring = dimension.kind == DimensionKind::kRing;
    const double blocks = static_cast<double>(ring ? size * size / 4 : size - 1);
    const double sent_bytes = static_cast<double>(bytes) * blocks / static_cast<double>(size);
    slowest_ns = std::max(slowest_ns, 8000 * sent_bytes / static_cast<double>(dimension.bandwidth_mbps));
    if (dimension.latency_ns == kNominalLatency) continue;
    latencies_ns += static_cast<double>((ring ? size / 2 : 1) * dimension.latency_ns);
  }
  return slowest_ns + latencies_ns;
}

}  // namespace trestle
