#include "cli/sim/sim_run.h"

#include <algorithm>

#include "cli/sim/variants.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"

namespace trestle {
namespace {

constexpr uint64_t kElementBytes = 4;                 // of the engine's float32
constexpr int64_t kMostEngineRanks = 2048;            // about 0.7 MiB each
constexpr uint64_t kMostEngineSegments = 16'000'000;  // of all ranks: some minutes

// Fills in the transports' nominal speeds where the topology has none. For the models steps and engine: run_paper plans
// for them, and refuses a dimension without bandwidth.
Topology with_nominal_speeds(const Topology& topology, std::vector<std::string>& notes) {
  Topology result = topology;
  for (size_t d = 0; d < result.dimensions.size(); ++d) {
    Dimension& dimension = result.dimensions[d];
    const RailCost nominal = rail_cost(topology, static_cast<uint8_t>(d));
    if (dimension.bandwidth_mbps == 0) {
      notes.push_back("dimension " + std::to_string(d + 1) +
                      " has no bandwidth in the topology: its transport's nominal bandwidth is used");
      dimension.bandwidth_mbps = nominal.bandwidth_mbps;
    }
    if (dimension.latency_ns == kNominalLatency) dimension.latency_ns = nominal.latency_ns;
  }
  return result;
}

SimLane lane_of(const Topology& topology, uint8_t dimension) {
  SimLane lane;
  lane.dimension = dimension;
  lane.name = lane_name(topology, dimension);
  lane.gbps = static_cast<double>(rail_cost(topology, dimension).bandwidth_mbps) / 1000;
  return lane;
}

// Takes the numbers of another model's report into the view.
void take_report(const SimReport& report, const Schedule& schedule, const Topology& topology, SimView& view) {
  view.time_ns = static_cast<double>(report.time_ps) / 1000;
  view.utilization = report.utilization;
  view.lanes.clear();
  for (size_t l = 0; l < report.links.size(); ++l) {
    const SimReportLink& link = report.links[l];
    SimLane& lane = view.lanes.emplace_back(lane_of(topology, link.dimension));
    lane.busy_ns = static_cast<double>(link.busy_ps) / 1000;
    lane.bytes = static_cast<double>(link.bytes);
    for (const PhaseId& id : schedule.orders[l].order) {
      const StepsTimes& times = report.phases[id.chunk][id.stage];
      lane.phases.push_back({id, schedule.chunks[id.chunk].phases[id.stage].kind,
                             static_cast<double>(times.start_ps) / 1000, static_cast<double>(times.end_ps) / 1000});
    }
    for (const SimReportRail& rail : link.rails) {
      lane.rails.push_back({rail.interface, static_cast<double>(rail.bandwidth_mbps) / 1000,
                            static_cast<double>(rail.busy_ps) / 1000, static_cast<double>(rail.bytes),
                            static_cast<double>(rail.again_bytes), rail.share, rail.losses});
    }
    for (const StepsTimes& busy : link.intervals) {
      lane.busy.push_back({static_cast<double>(busy.start_ps) / 1000, static_cast<double>(busy.end_ps) / 1000});
    }
  }
  for (size_t k = 0; k < view.chunks.size(); ++k) {
    const double whole_bytes = static_cast<double>(schedule.bytes);
    view.chunks[k].bytes =
        static_cast<double>(schedule.chunks[k].bytes) * (static_cast<double>(view.bytes) / whole_bytes);
  }
}

std::string sizes_text(const Topology& topology) {
  std::string text;
  for (const Dimension& d : topology.dimensions) text += (text.empty() ? "" : "x") + std::to_string(d.size);
  return text;
}

// Reduces the number of chunks so that no message is empty.
void fewer_chunks(PaperCase& operation, std::vector<std::string>& notes) {
  const auto ranks = static_cast<uint64_t>(operation.topology.ranks());
  const bool gathers = operation.collective == Collective::kAllGather;
  const uint64_t most = std::max<uint64_t>(1, operation.bytes / kElementBytes / (gathers ? 1 : ranks));
  if (operation.chunks <= most) return;
  notes.push_back(std::to_string(most) + (most == 1 ? " chunk" : " chunks") + " instead of " +
                  std::to_string(operation.chunks) + ": more would leave ranks without data");
  operation.chunks = static_cast<uint32_t>(most);
}

bool reduces_in_network(const Topology& topology) {
  return std::ranges::any_of(topology.dimensions, &Dimension::in_network_reduction);
}

bool has_rails(const Topology& topology) {
  return std::ranges::any_of(topology.dimensions, [](const Dimension& d) { return !d.rails.empty(); });
}

SimulateOptions simulate_options(const SimCase& sim_case) {
  SimulateOptions options;
  options.collective = sim_case.operation.collective;
  options.segments = sim_case.segments;
  options.work = sim_case.work;
  options.rails = sim_case.rails;
  options.whole_bytes = sim_case.whole_bytes;
  options.faults.seed = sim_case.seed;
  options.faults.rail_silence_ns = sim_case.rail_silence_ns;
  return options;
}

bool leaves_rule_open(const std::string& policy) {
  return std::ranges::any_of(schedule_variants(),
                             [&](const ScheduleVariant& variant) { return variant.policy == policy && variant.open; });
}

}  // namespace

Status check_engine_size(const Schedule& schedule, const Topology& topology, const SegmentRule& rule) {
  const int64_t ranks = topology.ranks();
  const std::string limits = "; at most " + std::to_string(kMostEngineRanks) + " ranks and " +
                             std::to_string(kMostEngineSegments) + " segments are possible: use the model steps";
  if (ranks > kMostEngineRanks) {
    return Error{Code::kInvalidArgument,
                 "the model engine simulates every rank, and " + std::to_string(ranks) + " are too many" + limits};
  }
  const uint64_t segments = segments_sent(schedule, topology, rule);
  if (segments > kMostEngineSegments) {
    return Error{Code::kInvalidArgument, "the model engine simulates every segment, and about " +
                                             std::to_string(segments) + " are too many" + limits +
                                             ", or fewer bytes or chunks"};
  }
  return {};
}

SimView view_of(const PaperResult& result, const PaperCase& operation) {
  SimView view;
  view.collective = to_string(operation.collective);
  view.sizes = sizes_text(result.topology);
  view.ranks = result.topology.ranks();
  view.bytes = operation.bytes;
  view.sched = operation.policy;
  view.model = to_string(SimModel::kPaper);
  view.time_ns = result.time.ns();
  view.utilization = result.utilization;
  view.ideal_time_ns = result.ideal_time_ns;
  view.fluid_bound_ns = result.fluid_bound_ns;
  for (const PaperChunk& chunk : result.chunks) {
    view.chunks.push_back({chunk.bytes, chunk.reduce_scatter, chunk.all_gather});
  }
  const double ticks_per_ns = static_cast<double>(result.scale.ticks_per_ns);
  for (const PaperLink& link : result.links) {
    SimLane& lane = view.lanes.emplace_back(lane_of(result.topology, link.dimension));
    lane.busy_ns = link.busy.ns();
    lane.bytes = link.bytes;
    for (const PaperPhase& phase : link.started) {
      const SimSpan span{static_cast<double>(phase.start_ticks) / ticks_per_ns,
                         static_cast<double>(phase.left_ticks) / ticks_per_ns};
      const auto& phases = result.planned.schedule.chunks[phase.id.chunk].phases;
      lane.phases.push_back({phase.id, phases[phase.id.stage].kind, span.start_ns, span.end_ns});
      lane.busy.push_back(span);
    }
  }
  return view;
}

Result<SimView> run_case(const SimCase& sim_case) {
  std::vector<std::string> notes;
  PaperCase operation = sim_case.operation;
  if (operation.topology.reason.find("dropped") != std::string::npos) notes.push_back(operation.topology.reason);
  const bool whole_phases = sim_case.model == SimModel::kPaper;
  SimulateOptions options = simulate_options(sim_case);
  if (has_rails(operation.topology) && sim_case.model != SimModel::kEngine)
    notes.push_back(
        "the rails of a dimension count as one link of their sum; --model engine simulates them one by one");
  if (!whole_phases) operation.topology = with_nominal_speeds(operation.topology, notes);
  if (!whole_phases && reduces_in_network(operation.topology)) {
    return Error{Code::kInvalidArgument, "only the model paper has switches that reduce"};
  }
  if (!whole_phases) {
    fewer_chunks(operation, notes);
    operation.in_flight = sim_case.in_flight;
    operation.second_level = steps_options(options);
  }
  const PaperResult planned = TRY(run_paper(operation));
  SimView view = view_of(planned, operation);
  view.intra = leaves_rule_open(operation.policy) ? operation.intra : "";
  if (!whole_phases) {
    const Schedule schedule = schedule_in_bytes(planned);
    if (sim_case.model == SimModel::kEngine) TRY(check_engine_size(schedule, planned.topology, sim_case.segments));
    options.intervals = true;
    const SimReport report = TRY(simulate_schedule(sim_case.model, schedule, planned.topology, options));
    take_report(report, schedule, planned.topology, view);
    view.model = to_string(sim_case.model);
  }
  view.notes = std::move(notes);
  return view;
}

}  // namespace trestle
