#include "sched/model/cost.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace trestle {
namespace {

// The cost of a transport if the topology gives no numbers.
RailCost nominal(TransportKind transport) {
  const TransportFacts& facts = facts_of(transport);
  return {facts.latency_ns, facts.bandwidth_mbps, facts.message_ns, facts.reduce_mbps, facts.converging_permille};
}

uint32_t bit_of(uint8_t dimension) {
  return dimension == kFlat ? 0 : uint32_t{1} << dimension;
}

RailCost dimension_cost(const Dimension& dimension) {
  RailCost cost = nominal(dimension.transport);
  if (dimension.latency_ns != kNominalLatency) cost.latency_ns = dimension.latency_ns;
  if (dimension.bandwidth_mbps != 0) cost.bandwidth_mbps = dimension.bandwidth_mbps;
  if (dimension.data) {
    cost.message_ns = dimension.data->message_ns;
    cost.reduce_mbps = dimension.data->reduce_mbps;
  }
  return cost;
}

}  // namespace

RailCost rail_cost(const Topology& topology, uint8_t dimension) {
  if (dimension != kFlat) {
    CHECK(dimension < topology.dimensions.size(), "the cost of a dimension that does not exist");
    return dimension_cost(topology.dimensions[dimension]);
  }
  RailCost worst = nominal(automatic_transport(Reach::kProcess));
  bool first = true;
  for (const Dimension& each : topology.dimensions) {
    const RailCost cost = dimension_cost(each);
    if (first) worst = cost;
    first = false;
    worst.latency_ns = std::max(worst.latency_ns, cost.latency_ns);
    worst.bandwidth_mbps = std::min(worst.bandwidth_mbps, cost.bandwidth_mbps);
    worst.message_ns = std::max(worst.message_ns, cost.message_ns);
    worst.reduce_mbps = std::min(worst.reduce_mbps, cost.reduce_mbps);
    worst.converging_permille = std::max(worst.converging_permille, cost.converging_permille);
  }
  return worst;
}

int32_t group_size(const Topology& topology, const PhaseChoice& choice) {
  if (choice.kind == PhaseKind::kSend || choice.kind == PhaseKind::kRecv) return 2;
  return topology.group_size(choice.dimension);
}

bool regroups(const PhaseChoice& choice) {
  return choice.kind == PhaseKind::kAllToAll && choice.dimension != kFlat;
}

CostModel::CostModel(const Topology& topology, const BlockBytes& blocks)
    : topology_(topology), paper_(false), dims_(topology.dimensions.size() + 1), uneven_(topology, blocks) {
  set_rates();
}

CostModel::CostModel(const Topology& topology, const ModelScale& scale)
    : topology_(topology), scale_(scale), paper_(true), dims_(topology.dimensions.size() + 1), uneven_(topology, {}) {
  set_rates();
}

void CostModel::set_rates() {
  std::vector<std::string> resources;
  for (size_t d = 0; d < topology_.dimensions.size(); ++d) {
    const Dimension& dimension = topology_.dimensions[d];
    dims_[d].rail = rail_cost(topology_, static_cast<uint8_t>(d));
    // The paper's model uses only the numbers in the topology.
    if (paper_ && dimension.latency_ns == kNominalLatency) dims_[d].rail.latency_ns = 0;
    if (dimension.shared_resource.empty()) continue;
    const auto known = std::find(resources.begin(), resources.end(), dimension.shared_resource);
    dims_[d].resource = static_cast<uint8_t>(known - resources.begin());
    if (known == resources.end()) resources.push_back(dimension.shared_resource);
    dims_[d].shared_ps_per_byte = dimension.shared_ps_per_byte;
  }
  Dim& flat = dims_.back();
  flat.rail = rail_cost(topology_, kFlat);
  for (const Dim& each : dims_) {
    if (each.shared_ps_per_byte <= flat.shared_ps_per_byte) continue;
    flat.shared_ps_per_byte = each.shared_ps_per_byte;
    flat.resource = each.resource;
  }
  // 8 bits at 10^6 bit/s take 8000 ns.
  const auto rate = [&](Wide ns, Wide per_bytes) {
    const Wide ticks = ns * scale_.ticks_per_ns;
    const Wide bytes = per_bytes * scale_.parts_per_byte;
    Wide a = ticks;
    Wide b = bytes;
    while (b != 0) std::swap(a %= b, b);
    return ticks == 0 ? Rate{} : Rate{ticks / a, bytes / a};
  };
  for (Dim& each : dims_) {
    each.link = rate(8000, each.rail.bandwidth_mbps);
    each.reduction = rate(8000, each.rail.reduce_mbps);
    each.shared = rate(each.shared_ps_per_byte, 1000);
  }
}

// bytes * numerator / denominator at this rate, rounded up. Limited so that sums of such times do not overflow.
uint64_t CostModel::ticks(PhaseBytes bytes, uint64_t numerator, uint64_t denominator, const Rate& rate) const {
  const Wide most = Wide{1} << (paper_ ? 61 : 48);  // the library's, in picoseconds: 281 s
  Wide above = static_cast<Wide>(bytes.bytes) * numerator;
  Wide below = static_cast<Wide>(bytes.divisor) * denominator;
  if (above >> 64 == 0 && below >> 64 == 0) {
    // The common case avoids 128-bit divisions.
    const auto a = static_cast<uint64_t>(above);
    const auto b = static_cast<uint64_t>(below);
    if (a % b == 0) {
      above = a / b;
      below = 1;
    }
  } else if (above % below == 0) {
    above /= below;
    below = 1;
  }
  if (rate.ticks == 0) return 0;
  if (above > ~Wide{0} / rate.ticks / 2 || below > ~Wide{0} / rate.bytes / 2) return static_cast<uint64_t>(most);
  above *= rate.ticks;
  below *= rate.bytes;
  if (below == 1) return static_cast<uint64_t>(std::min(most, above));
  above += below - 1;
  if (above >> 64 == 0)
    return std::min(static_cast<uint64_t>(most), static_cast<uint64_t>(above) / static_cast<uint64_t>(below));
  return static_cast<uint64_t>(std::min(most, above / below));
}

// Every divisor divides the number of ranks, and chunks of the paper's model are multiples of that number.
uint64_t CostModel::size(PhaseBytes bytes) const {
  static constexpr Wide kMost = Wide{1} << 61;
  const Wide unit = paper_ ? 1 : static_cast<Wide>(topology_.ranks());
  return static_cast<uint64_t>(std::min(kMost, bytes.bytes * unit / bytes.divisor));
}

std::optional<uint16_t> CostModel::fixed_algorithm(const PhaseChoice& choice) const {
  if (!paper_) return std::nullopt;
  CHECK(choice.dimension < topology_.dimensions.size(), "the paper's model has no phases over all ranks");
  static constexpr std::string_view kNames[] = {"ring", "direct", "hd"};  // by DimensionKind
  const auto name = kNames[static_cast<size_t>(topology_.dimensions[choice.dimension].kind)];
  uint16_t index = 0;
  while (algorithms()[index].name != name) ++index;
  return index;
}

AlgorithmCost CostModel::paper_cost(const PhaseChoice& choice) const {
  const Dimension& dimension = topology_.dimensions[choice.dimension];
  const bool gathers = choice.kind == PhaseKind::kAllGather;
  CHECK(gathers || choice.kind == PhaseKind::kReduceScatter, "the paper's model has two kinds of phases");
  const auto ranks = static_cast<uint32_t>(dimension.size);
  AlgorithmCost cost;
  cost.sent_num = ranks - 1;
  cost.sent_den = ranks;
  if (dimension.in_network_reduction) {
    cost.steps = 1;
    if (gathers) cost.sent_num = 1;
  } else if (dimension.kind == DimensionKind::kRing) {
    cost.steps = ranks - 1;
  } else if (dimension.kind == DimensionKind::kFullyConnected) {
    cost.steps = 1;
  } else {
    cost.steps = static_cast<uint32_t>(std::bit_width(ranks - 1));
  }
  return cost;
}

CostModel::Dim& CostModel::dim(uint8_t dimension) {
  if (dimension == kFlat) return dims_.back();
  CHECK(dimension + size_t{1} < dims_.size(), "the cost of a phase in a dimension that does not exist");
  return dims_[dimension];
}

const AlgorithmCost& CostModel::algorithm_cost(Dim& dim, const PhaseChoice& choice, uint32_t fixed) {
  CHECK(choice.algorithm < algorithms().size(), "the cost of an algorithm that does not exist");
  if (uneven_.concerns(choice)) return uneven_.cost(choice, fixed);
  if (dim.algorithms.empty()) dim.algorithms.resize(algorithms().size() * kPhaseKinds);
  auto& cost = dim.algorithms[choice.algorithm * size_t{kPhaseKinds} + static_cast<size_t>(choice.kind)];
  if (!cost) {
    cost =
        paper_ ? paper_cost(choice) : algorithms()[choice.algorithm].cost(choice.kind, group_size(topology_, choice));
  }
  return *cost;
}

SimulatedPhase CostModel::phase(const PhaseChoice& choice, PhaseBytes bytes) {
  Dim& where = dim(choice.dimension);
  const AlgorithmCost& cost = algorithm_cost(where, choice, bytes.fixed);
  SimulatedPhase result;
  result.resource = where.resource;
  result.kind = choice.kind;
  const uint64_t lost_permille = cost.converges && !paper_ ? where.rail.converging_permille : 0;
  result.link_ticks = with_losses(ticks(bytes, cost.sent_num, cost.sent_den, where.link), lost_permille);
  if (!paper_) {
    if (regroups(choice)) {
      result.link_ticks += ticks(bytes, 1, static_cast<uint64_t>(group_size(topology_, choice)), where.reduction);
    }
    result.link_ticks += ticks(bytes, cost.reduced_num, cost.reduced_den, where.reduction) +
                         cost.messages * where.rail.message_ns * scale_.ticks_per_ns / 2;
  }
  result.delay_ticks = cost.steps * where.rail.latency_ns * scale_.ticks_per_ns;
  if (where.resource != kNoResource) {
    result.resource_ticks = with_losses(ticks(bytes, cost.sent_num, cost.sent_den, where.shared), lost_permille);
  }
  // The bytes of a phase are those of its larger side.
  PhaseBytes other = bytes;
  if (choice.kind == PhaseKind::kReduceScatter || choice.kind == PhaseKind::kAllGather) {
    other.divisor *= static_cast<uint64_t>(group_size(topology_, choice));
  }
  result.size_before = size(choice.kind == PhaseKind::kAllGather ? other : bytes);
  result.size_after = size(choice.kind == PhaseKind::kReduceScatter ? other : bytes);
  return result;
}

uint64_t CostModel::alone_ticks(const PhaseChoice& choice, PhaseBytes bytes) {
  const SimulatedPhase cost = phase(choice, bytes);
  return std::max(cost.link_ticks, cost.resource_ticks) + cost.delay_ticks;
}

void CostModel::append(const ChunkSchedule& chunk, const std::array<uint8_t, 256>& links, Simulation& simulation) {
  PhaseWalk walk(topology_, chunk.bytes, chunk.phases);
  size_t left = chunk.phases.size();
  for (const PhaseChoice& choice : chunk.phases) {
    SimulatedPhase& added = simulation.phases.emplace_back(phase(choice, walk.next(choice)));
    added.link = links[choice.dimension];
    added.after = static_cast<uint8_t>(std::min<size_t>(--left, 255));
  }
  simulation.first.push_back(static_cast<uint32_t>(simulation.phases.size()));
}

Simulation CostModel::simulation_of(const Schedule& schedule) {
  Simulation simulation;
  std::array<uint8_t, 256> links{};
  for (const DimensionOrder& order : schedule.orders) {
    links[order.dimension] = static_cast<uint8_t>(simulation.in_flight.size());
    simulation.in_flight.push_back(order.in_flight);
  }
  for (const ChunkSchedule& chunk : schedule.chunks) append(chunk, links, simulation);
  return simulation;
}

PhaseWalk::PhaseWalk(const Topology& topology, uint64_t bytes, const std::vector<PhaseChoice>& phases)
    : topology_(topology), bytes_(bytes) {
  // Schedule::bytes counts the data where it is whole: before the first reduce-scatter, after the last all-gather.
  for (const PhaseChoice& choice : phases) {
    if (choice.kind == PhaseKind::kReduceScatter) {
      divisor_ = 1;
      split_ = 0;
      return;
    }
    if (choice.kind != PhaseKind::kAllGather) continue;
    divisor_ *= static_cast<uint64_t>(topology.group_size(choice.dimension));
    split_ |= bit_of(choice.dimension);
  }
}

PhaseBytes PhaseWalk::next(const PhaseChoice& choice) {
  PhaseBytes result{bytes_, divisor_, split_};
  const auto size = static_cast<uint64_t>(topology_.group_size(choice.dimension));
  if (choice.kind == PhaseKind::kReduceScatter) {
    divisor_ *= size;
    split_ |= bit_of(choice.dimension);
  }
  if (choice.kind == PhaseKind::kAllGather) {
    CHECK(divisor_ % size == 0, "an all-gather phase of data that is not scattered");
    divisor_ /= size;
    split_ &= ~bit_of(choice.dimension);
    result.divisor = divisor_;
    result.fixed = split_;
  }
  return result;
}

}  // namespace trestle
