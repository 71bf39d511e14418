#include "cli/train/topology_cost.h"

#include <algorithm>
#include <cmath>

#include "gradient/executor/link_fit.h"
#include "sched/model/predict.h"

namespace trestle {
namespace {

constexpr uint64_t kFloatBytes = 4;
constexpr uint64_t kLeastBytes = uint64_t{4} << 10;
constexpr uint64_t kMostCostBytes = uint64_t{64} << 20;
constexpr uint64_t kFactor = 4;

Result<FittedCost> fit(Collective collective, const Topology& topology, const SelectionConfig& config) {
  const uint64_t share = kFloatBytes * static_cast<uint64_t>(topology.ranks());
  FittedCost fitted;
  std::vector<MeasuredMessage> measured;
  for (uint64_t least = kLeastBytes; least <= kMostCostBytes; least *= kFactor) {
    SelectionRequest request;
    request.collective = collective;
    request.element_bytes = kFloatBytes;
    request.bytes = (least + share - 1) / share * share;
    if (!fitted.points.empty() && fitted.points.back().bytes == request.bytes) continue;
    const Schedule schedule = TRY(select_schedule(request, topology, config));
    const double predicted_s = 1e-9 * static_cast<double>(std::max<uint64_t>(predict_ns(schedule, topology), 1));
    fitted.points.push_back({request.bytes, predicted_s});
    measured.push_back({static_cast<double>(request.bytes), predicted_s});
  }
  fitted.cost = fit_cost(measured);
  return fitted;
}

}  // namespace

double FittedCost::worst() const {
  double most = 0;
  for (const CostPoint& point : points) most = std::max(most, std::fabs(cost.of(point.bytes) / point.predicted_s - 1));
  return most;
}

GradientLink TopologyCost::link() const {
  return {all_reduce.cost, reduce_scatter.cost, all_gather.cost};
}

Result<TopologyCost> fit_topology(const Topology& topology, const SelectionConfig& config) {
  TopologyCost cost;
  cost.workers = topology.ranks();
  if (cost.workers == 1) return cost;
  TRY(validate(config, topology));
  cost.all_reduce = TRY(fit(Collective::kAllReduce, topology, config));
  cost.reduce_scatter = TRY(fit(Collective::kReduceScatter, topology, config));
  cost.all_gather = TRY(fit(Collective::kAllGather, topology, config));
  return cost;
}

}  // namespace trestle
