#include "sched/policy/order_loads.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/wide.h"

namespace trestle {
namespace {

PhaseChoice cheapest_of(const std::vector<uint16_t>& allowed, CostModel& model, PhaseChoice phase, PhaseBytes bytes) {
  CHECK(!allowed.empty(), "no algorithm may serve a phase");
  uint64_t best_ticks = UINT64_MAX;
  PhaseChoice best = phase;
  for (const uint16_t algorithm : allowed) {
    phase.algorithm = algorithm;
    const uint64_t ticks = model.alone_ticks(phase, bytes);
    if (ticks >= best_ticks) continue;
    best = phase;
    best_ticks = ticks;
  }
  return best;
}

// The bytes of data that is split over a set of the dimensions.
PhaseBytes split_over(const Topology& topology, const std::vector<uint8_t>& dimensions, uint32_t set) {
  PhaseBytes split;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if ((set >> d & 1) == 0) continue;
    split.divisor *= static_cast<uint64_t>(topology.group_size(dimensions[d]));
    if (dimensions[d] != kFlat) split.fixed |= uint32_t{1} << dimensions[d];
  }
  return split;
}

}  // namespace

OrderLoads::OrderLoads(PolicyRequest& request, uint64_t typical_bytes, uint32_t chunks)
    : OrderLoads(request, typical_bytes, chunks, Costs::kCheapest) {}

OrderLoads OrderLoads::lowest(PolicyRequest& request) {
  return OrderLoads(request, request.bytes, 1, Costs::kLowest);
}

OrderLoads::OrderLoads(PolicyRequest& request, uint64_t typical_bytes, uint32_t chunks, Costs costs)
    : dimensions_(request.dimensions), resource_row_(dimensions_.size(), kMostRows), rows_(dimensions_.size()) {
  CHECK(!dimensions_.empty() && dimensions_.size() <= kMaxDimensions, "orders of no or too many dimensions");
  CHECK(chunks > 0, "loads of no chunks");
  scatter_.used = request.reduce_scatter;
  gather_.used = request.all_gather;
  row_of_resource_.fill(kMostRows);
  delays_.fill(UINT64_MAX);
  if (scatter_.used) fill(scatter_, PhaseKind::kReduceScatter, request, typical_bytes, costs);
  if (gather_.used) fill(gather_, PhaseKind::kAllGather, request, typical_bytes, costs);
  if (scatter_.used) add_constants(scatter_, request.algorithms.model(), chunks);
  if (gather_.used) add_constants(gather_, request.algorithms.model(), chunks);
}

void OrderLoads::fill(Half& half, PhaseKind kind, PolicyRequest& request, uint64_t typical_bytes, Costs costs) {
  AlgorithmChoice& choice = request.algorithms;
  CostModel& model = choice.model();
  const size_t count = dimensions_.size();
  half.entries.resize((size_t{1} << count) * count);
  for (size_t d = 0; d < count; ++d) {
    const std::vector<uint16_t> allowed = choice.allowed(kind, dimensions_[d]);
    for (uint32_t set = 0; set < uint32_t{1} << count; ++set) {
      if ((set >> d & 1) != 0) continue;
      PhaseBytes typical = split_over(model.topology(), dimensions_, set);
      PhaseBytes all = typical;
      typical.bytes = typical_bytes;
      all.bytes = request.bytes;
      Entry& entry = half.entries[set * count + d];
      entry.choice = cheapest_of(allowed, model, {dimensions_[d], kind, 0}, typical);
      SimulatedPhase phase = model.phase(entry.choice, all);
      for (const uint16_t algorithm : allowed) {
        if (costs == Costs::kCheapest) break;
        const SimulatedPhase other = model.phase({dimensions_[d], kind, algorithm}, all);
        phase.link_ticks = std::min(phase.link_ticks, other.link_ticks);
        phase.delay_ticks = std::min(phase.delay_ticks, other.delay_ticks);
        phase.resource_ticks = std::min(phase.resource_ticks, other.resource_ticks);
      }
      entry.link_ticks = phase.link_ticks;
      entry.resource_ticks = phase.resource_ticks;
      entry.delay_ticks = phase.delay_ticks;
      if (phase.resource == kNoResource) continue;
      size_t& row = row_of_resource_[phase.resource];
      if (row == kMostRows) row = rows_++;
      resource_row_[d] = row;
    }
  }
}

// Every chunk pays the fixed costs. The entries contain those of one chunk, so this adds the others. A link also waits
// for the latency of its last phase.
void OrderLoads::add_constants(const Half& half, CostModel& model, uint32_t chunks) {
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    const uint32_t others = (uint32_t{1} << dimensions_.size()) - 1 - (uint32_t{1} << d);
    const uint64_t delay_ticks = std::min(entry(half, 0, d).delay_ticks, entry(half, others, d).delay_ticks);
    constants_[d] += model.phase(entry(half, 0, d).choice, {0, 1}).link_ticks * (chunks - 1);
    delays_[d] = std::min(delays_[d], delay_ticks);
    latency_ticks_ += delay_ticks;
  }
}

Loads OrderLoads::of(const HalfOrder& scatter, const HalfOrder& gather) const {
  Loads loads = constants_;
  const size_t count = dimensions_.size();
  for (size_t d = 0; d < count; ++d) loads[d] += delays_[d];
  const auto add = [&](const Half& half, uint32_t set, size_t d) {
    const Entry& what = entry(half, set, d);
    loads[d] += what.link_ticks;
    if (resource_row_[d] != kMostRows) loads[resource_row_[d]] += what.resource_ticks;
  };
  uint32_t set = 0;
  for (size_t i = 0; i < count && scatter_.used; ++i) {
    add(scatter_, set, scatter[i]);
    set |= uint32_t{1} << scatter[i];
  }
  set = 0;
  for (size_t i = count; i-- > 0 && gather_.used;) {
    add(gather_, set, gather[i]);
    set |= uint32_t{1} << gather[i];
  }
  return loads;
}

// The order in which a reduce-scatter runs the half. An all-gather runs it backwards.
HalfOrder OrderLoads::cheapest_from_the_outside(const Half& half, const Loads& weights) const {
  const size_t count = dimensions_.size();
  const uint32_t all = (uint32_t{1} << count) - 1;
  std::array<Wide, size_t{1} << kMaxDimensions> rest{};  // cost of all dimensions that are not in the set
  std::array<uint8_t, size_t{1} << kMaxDimensions> first{};
  for (uint32_t set = all; set-- > 0;) {
    rest[set] = std::numeric_limits<Wide>::max();
    for (size_t d = 0; d < count; ++d) {
      if ((set >> d & 1) != 0) continue;
      const Entry& what = entry(half, set, d);
      Wide cost = rest[set | uint32_t{1} << d] + Wide{what.link_ticks} * weights[d];
      if (resource_row_[d] != kMostRows) cost += Wide{what.resource_ticks} * weights[resource_row_[d]];
      if (cost >= rest[set]) continue;
      rest[set] = cost;
      first[set] = static_cast<uint8_t>(d);
    }
  }
  HalfOrder order{};
  uint32_t set = 0;
  for (size_t i = 0; i < count; ++i) {
    order[i] = first[set];
    set |= uint32_t{1} << order[i];
  }
  return order;
}

ChunkOrders OrderLoads::cheapest(const Loads& weights) const {
  ChunkOrders orders = baseline();
  if (scatter_.used) orders.scatter = cheapest_from_the_outside(scatter_, weights);
  if (gather_.used) {
    orders.gather = cheapest_from_the_outside(gather_, weights);
    std::reverse(orders.gather.begin(), orders.gather.begin() + static_cast<ptrdiff_t>(dimensions_.size()));
  }
  return orders;
}

ChunkOrders OrderLoads::baseline() const {
  ChunkOrders orders;
  const size_t count = dimensions_.size();
  for (size_t i = 0; i < count; ++i) {
    orders.scatter[i] = static_cast<uint8_t>(i);
    orders.gather[i] = static_cast<uint8_t>(count - 1 - i);
  }
  return orders;
}

ChunkSchedule OrderLoads::chunk(const ChunkOrders& orders) const {
  ChunkSchedule chunk{orders.bytes, {}};
  const size_t count = dimensions_.size();
  uint32_t set = 0;
  for (size_t i = 0; i < count && scatter_.used; ++i) {
    chunk.phases.push_back(entry(scatter_, set, orders.scatter[i]).choice);
    set |= uint32_t{1} << orders.scatter[i];
  }
  set = (uint32_t{1} << count) - 1;
  for (size_t i = 0; i < count && gather_.used; ++i) {
    set &= ~(uint32_t{1} << orders.gather[i]);
    chunk.phases.push_back(entry(gather_, set, orders.gather[i]).choice);
  }
  return chunk;
}

ChunkOrders OrderLoads::orders_of(const ChunkSchedule& chunk) const {
  ChunkOrders orders = baseline();
  orders.bytes = chunk.bytes;
  size_t scattered = 0;
  size_t gathered = 0;
  for (const PhaseChoice& phase : chunk.phases) {
    const auto d = static_cast<uint8_t>(std::ranges::find(dimensions_, phase.dimension) - dimensions_.begin());
    CHECK(d < dimensions_.size(), "a chunk goes over a dimension that was not asked for");
    if (phase.kind == PhaseKind::kReduceScatter) orders.scatter[scattered++] = d;
    if (phase.kind == PhaseKind::kAllGather) orders.gather[gathered++] = d;
  }
  return orders;
}

}  // namespace trestle
