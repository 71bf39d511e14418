#include "cli/sim/paper_study.h"

#include <algorithm>

#include "cli/sim/sim_run.h"

namespace trestle {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

class Study {
 public:
  explicit Study(const StudyRequest& request) : request_(request) {
    study_.collective = request.collective;
    study_.chunks = request.chunks;
    study_.paper_systems = request.systems.empty();
    study_.reducing_switches = request.reducing_switches;
    study_.gap_model = request.gap_model;
    study_.variants = schedule_variants();
    systems_ = request.systems.empty() ? named_paper_systems() : request.systems;
    for (NamedTopology& system : systems_) {
      for (Dimension& dimension : system.topology.dimensions) {
        if (request.reducing_switches) dimension.in_network_reduction = dimension.kind == DimensionKind::kSwitch;
        reduces_ = reduces_ || dimension.in_network_reduction;
      }
    }
  }

  Result<PaperStudy> run() {
    for (const NamedTopology& system : systems_) TRY(run_system(system));
    average();
    for (const NamedTopology& system : systems_) {
      if (in_sweep(system)) TRY(sweep(system));
    }
    for (const NamedTopology& system : systems_) {
      if (!reduces_) TRY(gaps(system));
    }
    return std::move(study_);
  }

 private:
  PaperCase operation(const NamedTopology& system, const ScheduleVariant& variant, uint64_t size_mib,
                      uint32_t chunks) const {
    PaperCase operation;
    operation.topology = system.topology;
    operation.collective = request_.collective;
    operation.bytes = size_mib * kMib;
    if (request_.collective == Collective::kAllGather) {
      const auto ranks = static_cast<uint64_t>(system.topology.ranks());
      operation.bytes = std::max<uint64_t>(1, operation.bytes / ranks);
    }
    operation.chunks = chunks;
    operation.policy = variant.policy;
    operation.intra = variant.intra;
    return operation;
  }

  Status run_system(const NamedTopology& system) {
    StudyResult& result = study_.systems.emplace_back();
    result.name = system.name;
    const uint64_t largest = std::ranges::max(request_.sizes_mib);
    for (const uint64_t size_mib : request_.sizes_mib) {
      StudyPoint& point = result.points.emplace_back();
      point.size_mib = size_mib;
      for (const ScheduleVariant& variant : study_.variants) {
        const PaperCase paper_case = operation(system, variant, size_mib, request_.chunks);
        const PaperResult run = TRY(run_paper(paper_case));
        if (point.runs.empty()) point.ideal_time_ns = run.ideal_time_ns;
        if (point.runs.empty()) point.fluid_bound_ns = run.fluid_bound_ns;
        point.runs.push_back({run.time.ns(), run.utilization});
        if (size_mib != largest) continue;
        result.largest.push_back(view_of(run, paper_case));
        result.largest.back().sched = variant.name;
      }
    }
    return {};
  }

  static void add(StudyMean& mean, double utilization, double speedup, double points) {
    mean.utilization += utilization / points;
    mean.speedup += speedup / points;
    mean.most_speedup = std::max(mean.most_speedup, speedup);
  }

  void average() {
    study_.means.resize(study_.variants.size());
    double points = 0;
    for (const StudyResult& system : study_.systems) points += static_cast<double>(system.points.size());
    for (const StudyResult& system : study_.systems) {
      for (const StudyPoint& point : system.points) {
        const double baseline_ns = point.runs.front().time_ns;
        for (size_t v = 0; v < study_.means.size(); ++v) {
          add(study_.means[v], point.runs[v].utilization, baseline_ns / point.runs[v].time_ns, points);
        }
        add(study_.ideal, 1, baseline_ns / point.ideal_time_ns, points);
      }
    }
  }

  // The paper sweeps the number of chunks on these two systems.
  bool in_sweep(const NamedTopology& system) const {
    return !study_.paper_systems || system.name == "3D-SW_SW_SW_hetero" || system.name == "4D-Ring_FC_Ring_SW";
  }

  Status sweep(const NamedTopology& system) {
    const auto [smallest, largest] = std::ranges::minmax(request_.sizes_mib);
    for (const uint32_t chunks : request_.sweep_chunks) {
      SweepPoint point{system.name, chunks, {}};
      for (const ScheduleVariant& variant : study_.variants) {
        double sum = 0;
        for (const uint64_t size_mib : {smallest, largest}) {
          sum += TRY(run_paper(operation(system, variant, size_mib, chunks))).utilization;
        }
        point.utilization.push_back(sum / 2);
      }
      study_.sweep.push_back(std::move(point));
    }
    return {};
  }

  // Compares small data in many chunks and large data in few chunks.
  Status gaps(const NamedTopology& system) {
    const auto [smallest, largest] = std::ranges::minmax(request_.sizes_mib);
    if (request_.gap_model == SimModel::kSteps) TRY(gap(system, smallest, request_.chunks));
    return gap(system, largest, std::max(1u, request_.chunks / 8));
  }

  Status gap(const NamedTopology& system, uint64_t size_mib, uint32_t chunks) {
    GapPoint point;
    point.system = system.name;
    point.size_mib = size_mib;
    point.chunks = chunks;
    for (const ScheduleVariant& variant : study_.variants) {
      const PaperResult planned = TRY(run_paper(operation(system, variant, size_mib, chunks)));
      const Schedule schedule = schedule_in_bytes(planned);
      const auto steps_ns = [&](uint32_t segments) -> Result<double> {
        SimulateOptions options;
        options.collective = request_.collective;
        options.segments.per_message = segments;
        if (request_.gap_model == SimModel::kEngine) {
          TRY(check_engine_size(schedule, planned.topology, options.segments));
        }
        const SimReport report = TRY(simulate_schedule(request_.gap_model, schedule, planned.topology, options));
        return static_cast<double>(report.time_ps) / 1000;
      };
      const double whole_ns = TRY(steps_ns(1));
      const double cut_ns = TRY(steps_ns(kStudySegments));
      const double paper_ns = planned.time.ns();
      point.paper.push_back({paper_ns, planned.utilization});
      point.gaps.push_back({whole_ns / paper_ns - 1, cut_ns / paper_ns - 1, cut_ns});
    }
    study_.gaps.push_back(std::move(point));
    return {};
  }

  const StudyRequest& request_;
  std::vector<NamedTopology> systems_;
  bool reduces_ = false;
  PaperStudy study_;
};

}  // namespace

Result<PaperStudy> study_paper(const StudyRequest& request) {
  return Study(request).run();
}

}  // namespace trestle
