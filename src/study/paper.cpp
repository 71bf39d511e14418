#include "study/paper.h"

#include <numeric>

#include "base/check.h"
#include "sched/model/second_level.h"
#include "sched/policy/fluid_bound.h"
#include "sched/policy/themis.h"

namespace trestle {
namespace {

Result<Topology> modelled(const PaperCase& paper_case) {
  Topology topology;
  topology.reason = paper_case.topology.reason;
  uint64_t ranks = 1;
  for (size_t d = 0; d < paper_case.topology.dimensions.size(); ++d) {
    const Dimension& dimension = paper_case.topology.dimensions[d];
    if (dimension.size < 1) return invalid_argument("dimension " + std::to_string(d + 1) + ": a size below 1");
    if (dimension.size == 1) {
      topology.reason += "; dropped, because of size 1: dimension " + std::to_string(d + 1);
      continue;
    }
    ranks *= static_cast<uint64_t>(dimension.size);
    if (ranks > INT32_MAX) return invalid_argument("the dimensions hold more than 2147483647 ranks");
    topology.dimensions.push_back(dimension);
    // In an all-gather alone every rank receives the others' data, whether switches multicast it or not.
    if (paper_case.collective == Collective::kAllGather) topology.dimensions.back().in_network_reduction = false;
  }
  if (topology.dimensions.empty()) return invalid_argument("one rank has nothing to send");
  if (topology.dimensions.size() > kMaxDimensions) {
    return invalid_argument(std::to_string(topology.dimensions.size()) + " dimensions, at most " +
                            std::to_string(kMaxDimensions) + " are possible");
  }
  return topology;
}

Status check(const PaperCase& paper_case) {
  const bool known = paper_case.collective == Collective::kAllReduce ||
                     paper_case.collective == Collective::kReduceScatter ||
                     paper_case.collective == Collective::kAllGather;
  if (!known) return invalid_argument("the paper's model has all-reduce, reduce-scatter and all-gather only");
  if (paper_case.bytes == 0) return invalid_argument("an operation on no bytes");
  if (paper_case.chunks == 0) return invalid_argument("an operation in no chunks");
  if (paper_case.chunks > kMostChunks) {
    return invalid_argument(std::to_string(paper_case.chunks) + " chunks, at most " + std::to_string(kMostChunks));
  }
  return {};
}

// The bytes of the whole data: before a reduce-scatter, after an all-gather.
Result<uint64_t> whole_bytes(const PaperCase& paper_case, const Topology& topology) {
  if (paper_case.collective != Collective::kAllGather) return paper_case.bytes;
  uint64_t whole = 0;
  if (__builtin_mul_overflow(paper_case.bytes, static_cast<uint64_t>(topology.ranks()), &whole)) {
    return invalid_argument("an all-gather of more than 2^64 bytes");
  }
  return whole;
}

// Reads times, bytes and utilisation of a schedule by simulating it once more in its own order.
class Reader {
 public:
  Reader(PaperResult& result, CostModel& model, const PaperCase& paper_case)
      : result_(result), model_(model), gathers_(paper_case.collective == Collective::kAllGather) {}

  void read() {
    const Schedule& schedule = result_.planned.schedule;
    simulation_ = model_.simulation_of(schedule);
    const Simulator::Outcome outcome = simulator_.run_in_order(simulation_, schedule);
    CHECK(outcome.finished, "a schedule whose orders wait for each other");
    CHECK(outcome.time_ticks == result_.planned.time_ticks, "a schedule that replays to another time");
    result_.time = exact(outcome.time_ticks);
    for (const ChunkSchedule& chunk : schedule.chunks) read_chunk(chunk);
    for (size_t l = 0; l < schedule.orders.size(); ++l) read_link(l);
    read_loads();
    summarise();
  }

 private:
  ExactTime exact(uint64_t ticks) const { return {ticks, result_.scale.ticks_per_ns}; }

  void read_chunk(const ChunkSchedule& chunk) {
    PaperChunk& read = result_.chunks.emplace_back();
    const double parts = static_cast<double>(chunk.bytes) / (gathers_ ? model_.topology().ranks() : 1);
    read.bytes = parts / static_cast<double>(result_.scale.parts_per_byte);
    for (const PhaseChoice& phase : chunk.phases) {
      (phase.kind == PhaseKind::kAllGather ? read.all_gather : read.reduce_scatter).push_back(phase.dimension);
    }
  }

  void read_link(size_t l) {
    const DimensionOrder& order = result_.planned.schedule.orders[l];
    PaperLink& link = result_.links.emplace_back();
    link.dimension = order.dimension;
    uint64_t busy_ticks = 0;
    for (const PhaseId& id : order.order) {
      const size_t phase = simulation_.first[id.chunk] + id.stage;
      const PhaseTimes& times = simulator_.times()[phase];
      link.started.push_back({id, times.start_ticks, times.left_ticks, times.complete_ticks});
      busy_ticks += simulation_.phases[phase].link_ticks;
    }
    link.busy = exact(busy_ticks);
    const double mbps = static_cast<double>(model_.topology().dimensions[order.dimension].bandwidth_mbps);
    link.bytes = link.busy.ns() * mbps / 8000;
    link.utilization = static_cast<double>(busy_ticks) / static_cast<double>(result_.time.ticks);
  }

  // A_K is the latency of all phases that an operation has in a dimension. It is the same for every chunk. The load
  // tracker also adds the link times of the half that it tracks.
  void read_loads() {
    const Schedule& schedule = result_.planned.schedule;
    std::vector<uint64_t> latency_ticks(model_.topology().dimensions.size(), 0);
    std::vector<uint64_t> sent_ticks = latency_ticks;
    for (uint32_t k = 0; k < schedule.chunks.size(); ++k) {
      for (uint32_t i = 0; i < schedule.chunks[k].phases.size(); ++i) {
        const PhaseChoice& choice = schedule.chunks[k].phases[i];
        const SimulatedPhase& phase = simulation_.phases[simulation_.first[k] + i];
        if (k == 0) latency_ticks[choice.dimension] += phase.delay_ticks;
        if (gathers_ || choice.kind == PhaseKind::kReduceScatter) sent_ticks[choice.dimension] += phase.link_ticks;
      }
    }
    for (size_t d = 0; d < sent_ticks.size(); ++d) {
      result_.latencies.push_back(exact(latency_ticks[d]));
      result_.tracker_loads.push_back(exact(latency_ticks[d] + sent_ticks[d]));
    }
  }

  void summarise() {
    double sent_bytes = 0;
    double sum_gbps = 0;
    for (const PaperLink& link : result_.links) {
      sent_bytes += link.bytes;
      sum_gbps += static_cast<double>(model_.topology().dimensions[link.dimension].bandwidth_mbps) / 1000;
    }
    result_.ideal_time_ns = 8 * sent_bytes / sum_gbps;
    result_.utilization = result_.ideal_time_ns / result_.time.ns();
  }

  PaperResult& result_;
  CostModel& model_;
  const bool gathers_;
  Simulation simulation_;
  Simulator simulator_;
};

PolicyRequest request_for(const PaperCase& paper_case, AlgorithmChoice& algorithms, uint64_t whole_bytes) {
  PolicyRequest request{algorithms, {}};
  const Topology& topology = algorithms.model().topology();
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) request.dimensions.push_back(d);
  request.reduce_scatter = paper_case.collective != Collective::kAllGather;
  request.all_gather = paper_case.collective != Collective::kReduceScatter;
  request.bytes = whole_bytes * algorithms.model().scale().parts_per_byte;
  request.chunk_bytes.assign(paper_case.chunks, request.bytes / paper_case.chunks);
  request.in_flight = paper_case.in_flight;
  request.granule = static_cast<uint64_t>(topology.ranks());
  return request;
}

// Chunks end at multiples of this, so that every rank's share is a whole number of elements of 4 bytes.
uint64_t granule_in_bytes(const Topology& topology) {
  return 4 * static_cast<uint64_t>(topology.ranks());
}

// The bound from bytes alone, without latencies.
double fluid_bound_ns(const PaperCase& paper_case, const PaperResult& result, uint64_t whole_bytes) {
  Topology topology = result.topology;
  for (Dimension& dimension : topology.dimensions) dimension.latency_ns = 0;
  CostModel model(topology, result.scale);
  AlgorithmChoice algorithms(nullptr, model);
  PolicyRequest request = request_for(paper_case, algorithms, whole_bytes);
  return ExactTime{fluid_bound_ticks(request), result.scale.ticks_per_ns}.ns();
}

}  // namespace

std::string ExactTime::text() const {
  const uint64_t common = std::gcd(ticks, ticks_per_ns);
  const std::string whole = std::to_string(ticks / common);
  return ticks_per_ns == common ? whole : whole + "/" + std::to_string(ticks_per_ns / common);
}

Result<PaperResult> run_paper(const PaperCase& paper_case) {
  TRY(check(paper_case));
  const Policy* policy = TRY(find_policy(paper_case.policy));
  PaperResult result;
  result.topology = TRY(modelled(paper_case));
  const uint64_t whole = TRY(whole_bytes(paper_case, result.topology));
  result.scale = TRY(paper_scale(result.topology, whole, paper_case.chunks));
  result.exact = result.scale.exact;
  CostModel model(result.topology, result.scale);
  AlgorithmChoice algorithms(nullptr, model);
  PolicyRequest request = request_for(paper_case, algorithms, whole);
  request.intra = TRY(find_priority_rule(paper_case.intra));
  std::optional<SecondLevel> second_level;
  if (paper_case.second_level) {
    second_level.emplace(result.topology, *paper_case.second_level, result.scale, granule_in_bytes(result.topology));
    request.second_level = &*second_level;
  }
  result.planned = policy->plan(request);
  if (result.planned.phases_ticks != 0) result.planned.time_ticks = result.planned.phases_ticks;
  result.fluid_bound_ns = fluid_bound_ns(paper_case, result, whole);
  Reader(result, model, paper_case).read();
  if (policy->plan == plan_themis) result.fallback = themis_chunks(request).fallback;
  return result;
}

Schedule schedule_in_bytes(const PaperResult& result) {
  return in_bytes(result.planned.schedule, result.scale, granule_in_bytes(result.topology));
}

}  // namespace trestle
