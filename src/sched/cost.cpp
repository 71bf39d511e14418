#include "sched/cost.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {
namespace {

// Nominal figures where the topology has none. shm and loopback: a cache line between two cores and a copy at memory
// speed; tcp: one stream over the loopback device or a 25 to 50 Gb/s card. Reductions run at memory speed.
struct Nominal {
  TransportKind transport;
  RailCost cost;
};
constexpr Nominal kNominal[] = {
    {TransportKind::kLoopback, {400, 80'000, 150, 64'000}},
    {TransportKind::kShm, {700, 80'000, 200, 64'000}},
    {TransportKind::kTcp, {15'000, 30'000, 2'000, 64'000}},
};

// kAuto stands for pairs of several kinds: the slowest decides.
const RailCost& nominal(TransportKind transport) {
  for (const Nominal& row : kNominal) {
    if (row.transport == transport) return row.cost;
  }
  return kNominal[std::size(kNominal) - 1].cost;
}

RailCost dimension_cost(const Dimension& dimension) {
  RailCost cost = nominal(dimension.transport);
  if (dimension.latency_ns != 0) cost.latency_ns = dimension.latency_ns;
  if (dimension.bandwidth_mbps != 0) cost.bandwidth_mbps = dimension.bandwidth_mbps;
  return cost;
}

// numerator * bytes / (divisor * denominator), rounded up; far below overflow of the sums that are made of it.
uint64_t scaled(PhaseBytes bytes, uint64_t numerator, uint64_t factor, uint64_t denominator) {
  static constexpr unsigned __int128 kMost = uint64_t{1} << 48;  // 78 hours
  using Wide = unsigned __int128;
  const Wide below = static_cast<Wide>(bytes.divisor) * denominator;
  const Wide above = static_cast<Wide>(bytes.bytes) * numerator;
  if (above > ~Wide{0} / factor / 2) return static_cast<uint64_t>(kMost);
  return static_cast<uint64_t>(std::min(kMost, (above * factor + below - 1) / below));
}

constexpr uint64_t kPsPerNs = 1000;
constexpr uint64_t kPsPerByteAtOneMbps = 8'000'000;

}  // namespace

RailCost rail_cost(const Topology& topology, uint8_t dimension) {
  if (dimension != kFlat) {
    CHECK(dimension < topology.dimensions.size(), "the cost of a dimension that does not exist");
    return dimension_cost(topology.dimensions[dimension]);
  }
  RailCost worst = nominal(TransportKind::kLoopback);
  bool first = true;
  for (const Dimension& each : topology.dimensions) {
    const RailCost cost = dimension_cost(each);
    if (first) worst = cost;
    first = false;
    worst.latency_ns = std::max(worst.latency_ns, cost.latency_ns);
    worst.bandwidth_mbps = std::min(worst.bandwidth_mbps, cost.bandwidth_mbps);
    worst.message_ns = std::max(worst.message_ns, cost.message_ns);
    worst.reduce_mbps = std::min(worst.reduce_mbps, cost.reduce_mbps);
  }
  return worst;
}

int32_t group_size(const Topology& topology, const PhaseChoice& choice) {
  if (choice.kind == PhaseKind::kSend || choice.kind == PhaseKind::kRecv) return 2;
  return topology.group_size(choice.dimension);
}

CostModel::CostModel(const Topology& topology) : topology_(topology), dims_(topology.dimensions.size() + 1) {
  std::vector<std::string> resources;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const Dimension& dimension = topology.dimensions[d];
    dims_[d].rail = rail_cost(topology, static_cast<uint8_t>(d));
    if (dimension.shared_resource.empty()) continue;
    const auto known = std::find(resources.begin(), resources.end(), dimension.shared_resource);
    dims_[d].resource = static_cast<uint8_t>(known - resources.begin());
    if (known == resources.end()) resources.push_back(dimension.shared_resource);
    dims_[d].shared_ps_per_byte = dimension.shared_ps_per_byte;
  }
  Dim& flat = dims_.back();
  flat.rail = rail_cost(topology, kFlat);
  for (const Dim& each : dims_) {
    if (each.shared_ps_per_byte <= flat.shared_ps_per_byte) continue;
    flat.shared_ps_per_byte = each.shared_ps_per_byte;
    flat.resource = each.resource;
  }
}

CostModel::Dim& CostModel::dim(uint8_t dimension) {
  if (dimension == kFlat) return dims_.back();
  CHECK(dimension + size_t{1} < dims_.size(), "the cost of a phase in a dimension that does not exist");
  return dims_[dimension];
}

const AlgorithmCost& CostModel::algorithm_cost(Dim& dim, const PhaseChoice& choice) {
  CHECK(choice.algorithm < algorithms().size(), "the cost of an algorithm that does not exist");
  if (dim.algorithms.empty()) dim.algorithms.resize(algorithms().size() * kPhaseKinds);
  auto& cost = dim.algorithms[choice.algorithm * size_t{kPhaseKinds} + static_cast<size_t>(choice.kind)];
  if (!cost) cost = algorithms()[choice.algorithm].cost(choice.kind, group_size(topology_, choice));
  return *cost;
}

SimulatedPhase CostModel::phase(const PhaseChoice& choice, PhaseBytes bytes) {
  Dim& where = dim(choice.dimension);
  const AlgorithmCost& cost = algorithm_cost(where, choice);
  SimulatedPhase result;
  result.resource = where.resource;
  result.link_ps = scaled(bytes, cost.sent_num, kPsPerByteAtOneMbps, cost.sent_den * where.rail.bandwidth_mbps) +
                   scaled(bytes, cost.reduced_num, kPsPerByteAtOneMbps, cost.reduced_den * where.rail.reduce_mbps) +
                   cost.messages * where.rail.message_ns * kPsPerNs;
  result.delay_ps = cost.steps * where.rail.latency_ns * kPsPerNs;
  if (where.resource != kNoResource) {
    result.resource_ps = scaled(bytes, cost.sent_num, where.shared_ps_per_byte, cost.sent_den);
  }
  return result;
}

uint64_t CostModel::alone_ps(const PhaseChoice& choice, PhaseBytes bytes) {
  const SimulatedPhase cost = phase(choice, bytes);
  return std::max(cost.link_ps, cost.resource_ps) + cost.delay_ps;
}

void CostModel::append(const ChunkSchedule& chunk, const std::array<uint8_t, 256>& links, Simulation& simulation) {
  PhaseWalk walk(topology_, chunk.bytes, chunk.phases);
  for (const PhaseChoice& choice : chunk.phases) {
    simulation.phases.push_back(phase(choice, walk.next(choice)));
    simulation.phases.back().link = links[choice.dimension];
  }
  simulation.first.push_back(static_cast<uint32_t>(simulation.phases.size()));
}

PhaseWalk::PhaseWalk(const Topology& topology, uint64_t bytes, const std::vector<PhaseChoice>& phases)
    : topology_(topology), bytes_(bytes) {
  // Schedule::bytes counts the data where it is whole: before the first reduce-scatter, after the last all-gather.
  for (const PhaseChoice& choice : phases) {
    if (choice.kind == PhaseKind::kReduceScatter) {
      divisor_ = 1;
      return;
    }
    if (choice.kind == PhaseKind::kAllGather) divisor_ *= static_cast<uint64_t>(topology.group_size(choice.dimension));
  }
}

PhaseBytes PhaseWalk::next(const PhaseChoice& choice) {
  PhaseBytes result{bytes_, divisor_};
  const auto size = static_cast<uint64_t>(topology_.group_size(choice.dimension));
  if (choice.kind == PhaseKind::kReduceScatter) divisor_ *= size;
  if (choice.kind == PhaseKind::kAllGather) {
    CHECK(divisor_ % size == 0, "an all-gather phase of data that is not scattered");
    divisor_ /= size;
    result.divisor = divisor_;
  }
  return result;
}

}  // namespace trestle
