#include "sim/simulate_schedule.h"

#include <algorithm>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "sched/model/simulate.h"
#include "sim/cluster.h"

namespace trestle {
namespace {

struct ModelName {
  SimModel model;
  const char* name;
};
constexpr ModelName kNames[] = {
    {SimModel::kPaper, "paper"}, {SimModel::kSteps, "steps"}, {SimModel::kEngine, "engine"}};

const Error kWaiting{Code::kInternalError, "the orders of the schedule wait for each other"};

void fill_in(SimReport& report, const Topology& topology) {
  double bytes = 0;
  double mbps = 0;
  for (const Dimension& dimension : topology.dimensions) mbps += static_cast<double>(dimension.bandwidth_mbps);
  for (SimReportLink& link : report.links) {
    bytes += static_cast<double>(link.bytes);
    if (report.time_ps != 0) link.utilization = static_cast<double>(link.busy_ps) / static_cast<double>(report.time_ps);
  }
  if (mbps == 0) return;
  report.ideal_time_ns = bytes * 8000 / mbps;
  if (report.time_ps != 0) report.utilization = report.ideal_time_ns * 1000 / static_cast<double>(report.time_ps);
}

// Times are in ticks, sizes in parts (ModelScale).
Result<SimReport> run_phases(const Schedule& schedule, CostModel& model) {
  const Simulation simulation = model.simulation_of(schedule);
  Simulator simulator;
  const Simulator::Outcome outcome = simulator.run_in_order(simulation, schedule);
  if (!outcome.finished) return kWaiting;
  const uint64_t per_ns = model.scale().ticks_per_ns;
  const auto to_ps = [per_ns](uint64_t ticks) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * 1000 + per_ns - 1) / per_ns);
  };
  SimReport report;
  report.time_ps = to_ps(outcome.time_ticks);
  for (const DimensionOrder& order : schedule.orders) {
    SimReportLink& link = report.links.emplace_back();
    link.dimension = order.dimension;
    for (const PhaseId& id : order.order) {
      const PhaseTimes& times = simulator.times()[simulation.first[id.chunk] + id.stage];
      link.busy_ps += to_ps(times.left_ticks - times.start_ticks);
    }
  }
  for (size_t k = 0; k < schedule.chunks.size(); ++k) {
    std::vector<StepsTimes>& chunk = report.phases.emplace_back();
    for (uint32_t i = simulation.first[k]; i < simulation.first[k + 1]; ++i) {
      chunk.push_back({to_ps(simulator.times()[i].start_ticks), to_ps(simulator.times()[i].complete_ticks)});
    }
  }
  return report;
}

// The model does not affect the bytes that a rank sends.
void count_bytes(const Schedule& schedule, const Topology& topology, SimReport& report) {
  for (size_t l = 0; l < schedule.orders.size(); ++l) {
    unsigned __int128 bytes = 0;
    for (const PhaseId& id : schedule.orders[l].order) {
      const ChunkSchedule& chunk = schedule.chunks[id.chunk];
      PhaseWalk walk(topology, chunk.bytes, chunk.phases);
      PhaseBytes size;
      for (uint32_t stage = 0; stage <= id.stage; ++stage) size = walk.next(chunk.phases[stage]);
      const PhaseChoice& choice = chunk.phases[id.stage];
      const AlgorithmCost cost = algorithms()[choice.algorithm].cost(choice.kind, group_size(topology, choice));
      bytes += static_cast<unsigned __int128>(size.bytes) * cost.sent_num / (size.divisor * cost.sent_den);
    }
    report.links[l].bytes = static_cast<uint64_t>(bytes);
  }
}

Result<SimReport> run_paper_model(const Schedule& schedule, const Topology& topology, const SimulateOptions& options) {
  Result<SimReport> report = Error{Code::kInternalError, ""};
  if (options.overheads) {
    CostModel model(topology);
    report = run_phases(schedule, model);
  } else {
    const auto chunks = static_cast<uint32_t>(std::max<size_t>(1, schedule.chunks.size()));
    const ModelScale scale = TRY(paper_scale(topology, std::max<uint64_t>(1, schedule.bytes), chunks));
    Schedule parts = schedule;
    parts.bytes *= scale.parts_per_byte;
    for (ChunkSchedule& chunk : parts.chunks) chunk.bytes *= scale.parts_per_byte;
    CostModel model(topology, scale);
    report = run_phases(parts, model);
  }
  if (report.ok()) count_bytes(schedule, topology, report.value());
  return report;
}

Result<SimReport> run_steps_model(const Schedule& schedule, const Topology& topology, const SimulateOptions& options) {
  StepsResult result = StepsModel(topology, steps_options(options)).run(schedule);
  if (!result.finished) return kWaiting;
  SimReport report;
  report.time_ps = result.time_ps;
  for (StepsLink& link : result.links) {
    report.links.push_back({link.dimension, link.busy_ps, link.bytes, 0, std::move(link.intervals)});
  }
  report.phases = std::move(result.phases);
  return report;
}

Result<PrepareRequest> request_for(const Schedule& schedule, const Topology& topology, Collective collective) {
  PrepareRequest request;
  request.collective = collective;
  request.type = DataType::kFloat32;
  const auto ranks = static_cast<uint64_t>(topology.ranks());
  const uint64_t elements = schedule.bytes / size_of(request.type);
  if (elements < ranks) {
    return Error{Code::kInvalidArgument, std::to_string(schedule.bytes) + " bytes are fewer than " +
                                             std::to_string(ranks) + " ranks can share in the engine"};
  }
  request.count = has_block_per_rank(collective) ? elements / ranks : elements;
  return request;
}

std::vector<SimReportRail> report_rails(const SimLink& link, const std::vector<SimRailCount>& counts, uint64_t ranks) {
  std::vector<SimReportRail> rails;
  double bytes = 0;
  for (const SimRailCount& count : counts) bytes += static_cast<double>(count.bytes);
  for (size_t i = 0; i < counts.size(); ++i) {
    const SimRailCount& count = counts[i];
    const double share = bytes > 0 ? static_cast<double>(count.bytes) / bytes : 0;
    rails.push_back({link.rails[i].name, link.rails[i].bandwidth_mbps, count.bytes / ranks, count.again_bytes / ranks,
                     count.busy_ps / ranks, share, count.losses});
  }
  return rails;
}

void read_cluster(const Schedule& schedule, const Topology& topology, const std::vector<SimLink>& links,
                  SimCluster& cluster, SimReport& report) {
  const auto ranks = static_cast<uint64_t>(topology.ranks());
  report.time_ps = cluster.last_run_ps();
  report.messages = cluster.network().messages();
  for (const DimensionOrder& order : schedule.orders) {
    const uint8_t d = order.dimension;
    if (d == kFlat) continue;  // its messages use the links of the dimensions
    report.links.push_back({d, cluster.network().busy_ps(d) / ranks, cluster.network().bytes_sent(d) / ranks, 0});
    report.links.back().rails = report_rails(links[d], cluster.network().rail_counts(d), ranks);
  }
  size_t stages = 0;
  for (const ChunkSchedule& chunk : schedule.chunks) stages = std::max(stages, chunk.phases.size());
  const std::vector<SimPhaseTimes>& times = cluster.network().phase_times(0);
  for (size_t k = 0; k < schedule.chunks.size(); ++k) {
    std::vector<StepsTimes>& chunk = report.phases.emplace_back();
    for (size_t stage = 0; stage < schedule.chunks[k].phases.size(); ++stage) {
      const SimPhaseTimes& phase = times[k * stages + stage];
      chunk.push_back({phase.first_posted_ps, std::max(phase.first_posted_ps, phase.last_arrival_ps)});
    }
  }
}

Result<SimReport> run_engine(const Schedule& schedule, const Topology& topology, const SimulateOptions& options) {
  SimOptions sim;
  sim.links = sim_links(topology, options.overheads);
  sim.faults = options.faults;
  sim.work = options.work;
  for (SimLink& link : sim.links) {
    if (sim.work.mbps != 0) link.reduce_mbps = 0;
    link.whole_bytes = options.whole_bytes;
  }
  TRY(use_sim_rails(options.rails, sim.links, sim.faults));
  sim.segment_bytes = options.segments.bytes;
  sim.segments_per_message = options.segments.per_message;
  sim.segments_in_flight = options.window == 0 ? kSegmentsInFlight : options.window;
  sim.data = false;
  sim.timeout_ns = options.timeout_ns;
  SimCall call;
  call.request = TRY(request_for(schedule, topology, options.collective));
  call.schedule = schedule;
  SimCluster cluster(topology, sim);
  TRY(cluster.run({call}));
  SimReport report;
  read_cluster(schedule, topology, sim.links, cluster, report);
  return report;
}

}  // namespace

Result<SimModel> parse_sim_model(const std::string& name) {
  return TRY(row_named(kNames, name, "a model"))->model;
}

const char* to_string(SimModel model) {
  for (const ModelName& row : kNames) {
    if (row.model == model) return row.name;
  }
  return "invalid";
}

StepsOptions steps_options(const SimulateOptions& options) {
  StepsOptions steps;
  steps.segments = options.segments;
  steps.window = options.window;
  steps.overheads = options.overheads;
  steps.intervals = options.intervals;
  return steps;
}

Result<SimReport> simulate_schedule(SimModel model, const Schedule& schedule, const Topology& topology,
                                    const SimulateOptions& options) {
  Schedule as_run = schedule;
  if (options.in_flight != 0) {
    for (DimensionOrder& order : as_run.orders) order.in_flight = options.in_flight;
  }
  const auto run = model == SimModel::kPaper   ? run_paper_model
                   : model == SimModel::kSteps ? run_steps_model
                                               : run_engine;
  SimReport report = TRY(run(as_run, topology, options));
  fill_in(report, topology);
  return report;
}

}  // namespace trestle
