#include "sim/cluster.h"

#include <algorithm>

#include "sched/model/cost.h"

namespace trestle {

namespace {

// Rails without a bandwidth have equal parts of what the others leave of the dimension's.
std::vector<SimRail> sim_rails(const Dimension& dimension, const RailCost& cost) {
  uint64_t stated_mbps = 0;
  uint64_t open = 0;
  for (const DimensionRail& rail : dimension.rails) {
    stated_mbps += rail.bandwidth_mbps;
    open += rail.bandwidth_mbps == 0 ? 1 : 0;
  }
  const uint64_t left_mbps = cost.bandwidth_mbps > stated_mbps ? cost.bandwidth_mbps - stated_mbps : 0;
  std::vector<SimRail> rails;
  for (const DimensionRail& rail : dimension.rails) {
    SimRail& next = rails.emplace_back();
    next.name = rail.interface;
    next.stated = rail.bandwidth_mbps != 0;
    next.bandwidth_mbps = next.stated ? rail.bandwidth_mbps : std::max<uint64_t>(1, left_mbps / open);
    next.latency_ns = cost.latency_ns;
  }
  return rails;
}

}  // namespace

std::vector<SimLink> sim_links(const Topology& topology, bool overheads) {
  std::vector<SimLink> links;
  std::vector<std::string> resources;
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
    const Dimension& dimension = topology.dimensions[d];
    const RailCost cost = rail_cost(topology, d);
    SimLink& link = links.emplace_back();
    link.latency_ns = cost.latency_ns;
    link.bandwidth_mbps = cost.bandwidth_mbps;
    if (overheads) link.message_ns = cost.message_ns;
    if (overheads) link.reduce_mbps = cost.reduce_mbps;
    link.rails = sim_rails(dimension, cost);
    if (dimension.shared_resource.empty() || dimension.shared_ps_per_byte == 0) continue;
    const auto known = std::find(resources.begin(), resources.end(), dimension.shared_resource);
    link.resource = static_cast<uint8_t>(known - resources.begin());
    link.resource_ps_per_byte = dimension.shared_ps_per_byte;
    if (known == resources.end()) resources.push_back(dimension.shared_resource);
  }
  return links;
}

namespace {

uint64_t percent_of(const SimFaults& faults, int32_t rank) {
  for (const SlowRank& slow : faults.slow_ranks) {
    if (slow.rank == rank) return slow.percent;
  }
  return 100;
}

}  // namespace

SimCluster::SimCluster(const Topology& topology, const SimOptions& options)
    : topology_(topology),
      options_(options),
      network_(std::make_unique<SimNetwork>(topology, options.links, options.faults, options.data, clock_)) {
  const int32_t ranks = topology_.ranks();
  for (int32_t r = 0; r < ranks; ++r) {
    std::vector<std::unique_ptr<Transport>> transports;
    transports.push_back(network_->make_transport(r));
    std::vector<Transport*> router(ranks, transports[0].get());
    EngineConfig config;
    config.rank = r;
    config.ranks = ranks;
    config.name = "rank " + std::to_string(r);
    config.clock = &clock_;
    config.sleeps = false;
    if (options_.work.mbps != 0)
      config.work = std::make_unique<SimWorkQueue>(*network_, r, options_.work, percent_of(options_.faults, r),
                                                   options_.faults.seed + static_cast<uint64_t>(r));
    engines_.push_back(std::make_shared<Engine>(std::move(config), std::move(transports), std::move(router), nullptr));
  }
}

uint64_t SimCluster::segment_bytes(const void* self, const std::vector<int32_t>&) {
  return static_cast<const SimCluster*>(self)->options_.segment_bytes;
}

namespace {

// For each phase number: the position of the phase in the agreed order of its dimension.
std::vector<uint32_t> seniority_of(const Schedule& schedule) {
  size_t stages = 0;
  for (const ChunkSchedule& chunk : schedule.chunks) stages = std::max(stages, chunk.phases.size());
  std::vector<uint32_t> seniority(schedule.chunks.size() * stages);
  for (const DimensionOrder& order : schedule.orders) {
    for (uint32_t i = 0; i < order.order.size(); ++i) {
      seniority[order.order[i].chunk * stages + order.order[i].stage] = i;
    }
  }
  return seniority;
}

}  // namespace

Status SimCluster::start_call(const SimCall& call, uint64_t number, int32_t rank, size_t at_once,
                              SharedPreparation& shared) {
  PrepareContext context{&topology_, rank, options_.check_plans, &segment_bytes, this};
  context.segments_per_message = options_.segments_per_message;
  context.segments_in_flight = options_.segments_in_flight;
  context.data = options_.data;
  context.shared = &shared;
  context.plans = &plans_;
  auto prepared = TRY(prepare(call.request, call.schedule, context));
  Engine& engine = *engines_[rank];
  // Calls that begin together get their staging at the start, so that the engine needs no further round for it.
  if (options_.data) engine.staging().reserve(prepared->staging_bytes, at_once);
  Operation* operation = engine.acquire(prepared);
  const SimBuffers buffers = call.buffers.empty() ? SimBuffers{} : call.buffers[rank];
  operation->bind(private_region(buffers.send, 0), private_region(buffers.recv, 0), number, options_.timeout_ns);
  engine.count_pending(1);
  streams_[rank].push_back(std::make_shared<Stream>());
  streams_[rank].back()->enqueue({operation});
  return {};
}

Status SimCluster::start(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts) {
  const uint64_t first_number = next_number_;
  next_number_ += calls.size();
  streams_.assign(engines_.size(), {});
  outcomes_.assign(engines_.size(), nullptr);
  std::vector<SharedPreparation> shared(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) network_->set_seniority(first_number + i, seniority_of(calls[i].schedule));
  for (size_t r = 0; r < engines_.size(); ++r) {
    const size_t started = starts.empty() ? calls.size() : starts[r].size();
    for (size_t i = 0; i < started; ++i) {
      const size_t index = starts.empty() ? i : starts[r][i];
      TRY(start_call(calls[index], first_number + index, static_cast<int32_t>(r), started, shared[index]));
    }
  }
  return {};
}

// Calls only the engines of ranks that had an event: the others cannot move, and there may be a thousand of them.
// Returns true if there were any.
bool SimCluster::drive_awake() {
  network_->take_awake(awake_);
  for (const int32_t rank : awake_) {
    Engine& engine = *engines_[rank];
    if (engine.pending() == 0) continue;
    // One round is enough, unless it ended an operation: the next operation may then start.
    for (size_t before = engine.pending() + 1; engine.pending() != 0 && engine.pending() != before;) {
      before = engine.pending();
      engine.try_progress();
    }
    if (engine.pending() == 0) --busy_ranks_;
    CHECK(!options_.data || !engine.try_progress(), "a simulated rank could move after its round");
  }
  return !awake_.empty();
}

// No event is left. Moves time past all deadlines. Returns true if a rank failed by that.
bool SimCluster::expire() {
  static constexpr int kRounds = 1024;  // engines do not read the clock in every round
  if (options_.timeout_ns == 0) return false;
  clock_.advance_to(clock_.now_ns() + options_.timeout_ns);
  bool any = false;
  for (const auto& engine : engines_) {
    for (int i = 0; i < kRounds && engine->pending() != 0; ++i) engine->try_progress();
    any |= engine->failed();
  }
  busy_ranks_ = static_cast<size_t>(
      std::count_if(engines_.begin(), engines_.end(), [](const auto& engine) { return engine->pending() != 0; }));
  return any;
}

Status SimCluster::stuck() const {
  std::string text;
  for (const auto& engine : engines_) {
    if (engine->pending() == 0) continue;
    text += (text.empty() ? "rank " : " | rank ") + std::to_string(&engine - engines_.data()) + ": " +
            engine->oldest_operation();
  }
  if (text.empty()) return {};
  return Error{Code::kInternalError, "no rank can make progress: " + text};
}

Status SimCluster::collect() {
  Status first;
  for (size_t r = 0; r < engines_.size(); ++r) {
    outcomes_[r] = engines_[r]->failure();
    if (outcomes_[r] && first.ok()) first = *outcomes_[r];
  }
  return first;
}

Result<int64_t> SimCluster::run(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts) {
  const uint64_t begin_ps = clock_.now_ps();
  TRY(start(calls, starts));
  busy_ranks_ = engines_.size();
  for (const auto& engine : engines_) {
    while (engine->try_progress()) {
    }
    if (engine->pending() == 0) --busy_ranks_;
  }
  while (busy_ranks_ != 0) {
    if (drive_awake()) continue;
    if (network_->step()) continue;
    if (!expire()) TRY(stuck());
    break;
  }
  last_run_ps_ = clock_.now_ps() - begin_ps;
  TRY(collect());
  return static_cast<int64_t>(last_run_ps_ / 1000);
}

}  // namespace trestle
