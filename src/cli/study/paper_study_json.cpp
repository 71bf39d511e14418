#include "cli/json_writer.h"
#include "cli/study/paper_study_text.h"
#include "study/paper_systems.h"

namespace trestle {
namespace {

constexpr uint32_t kBins = 64;

std::string percent_series(const SimLane& lane, double time_ns) {
  return json::array(activity(lane, time_ns, kBins), [](double share) { return json::number(share); });
}

class Writer {
 public:
  explicit Writer(const PaperStudy& study) : study_(study) {}

  std::string write() const {
    const auto system = [this](const StudyResult& result) { return this->system(result); };
    const auto sweep = [this](const SweepPoint& point) { return this->sweep(point); };
    const auto gap = [this](const GapPoint& point) { return this->gap(point); };
    return json::object({{"collective", json::text(to_string(study_.collective))},
                         {"chunks", std::to_string(study_.chunks)},
                         {"reducing_switches", study_.reducing_switches ? "true" : "false"},
                         {"systems", json::array(study_.systems, system)},
                         {"means", means()},
                         {"ideal", mean("ideal", study_.ideal)},
                         {"paper", study_.paper_systems ? paper() : "null"},
                         {"sweep", json::array(study_.sweep, sweep)},
                         {"gap_model", json::text(to_string(study_.gap_model))},
                         {"steps_gap", json::array(study_.gaps, gap)}}) +
           "\n";
  }

 private:
  // A list of one value per variant.
  template <class Value>
  std::string by_variant(Value value) const {
    std::vector<std::string> values;
    for (size_t v = 0; v < study_.variants.size(); ++v) values.push_back(value(v));
    return json::array(values);
  }

  std::string point(const StudyPoint& point) const {
    const auto run = [&](size_t v) {
      return json::object({{"variant", json::text(study_.variants[v].name)},
                           {"time_ns", json::number(point.runs[v].time_ns)},
                           {"utilization", json::number(point.runs[v].utilization)},
                           {"speedup", json::number(point.runs.front().time_ns / point.runs[v].time_ns)}});
    };
    return json::object({{"mb", std::to_string(point.size_mib)},
                         {"ideal_time_ns", json::number(point.ideal_time_ns)},
                         {"fluid_bound_ns", json::number(point.fluid_bound_ns)},
                         {"runs", by_variant(run)}});
  }

  std::string system(const StudyResult& result) const {
    const auto series = [&](size_t v) {
      const SimView& view = result.largest[v];
      const auto lane = [&view](const SimLane& each) { return percent_series(each, view.time_ns); };
      return json::object(
          {{"variant", json::text(study_.variants[v].name)}, {"dimensions", json::array(view.lanes, lane)}});
    };
    return json::object({{"name", json::text(result.name)},
                         {"points", json::array(result.points, [this](const StudyPoint& p) { return point(p); })},
                         {"activity", by_variant(series)}});
  }

  static std::string mean(const std::string& name, const StudyMean& mean) {
    return json::object({{"variant", json::text(name)},
                         {"utilization", json::number(mean.utilization)},
                         {"speedup", json::number(mean.speedup)},
                         {"most_speedup", json::number(mean.most_speedup)}});
  }

  std::string means() const {
    return by_variant([&](size_t v) { return mean(study_.variants[v].name, study_.means[v]); });
  }

  static std::string paper() {
    return json::object({{"baseline_utilization", json::number(kPaperReport.baseline_utilization)},
                         {"themis_fifo_utilization", json::number(kPaperReport.themis_fifo_utilization)},
                         {"themis_scf_utilization", json::number(kPaperReport.themis_scf_utilization)},
                         {"themis_fifo_speedup", json::number(kPaperReport.themis_fifo_speedup)},
                         {"themis_scf_speedup", json::number(kPaperReport.themis_scf_speedup)},
                         {"most_speedup", json::number(kPaperReport.most_speedup)}});
  }

  std::string sweep(const SweepPoint& point) const {
    const auto run = [&](size_t v) {
      return json::object(
          {{"variant", json::text(study_.variants[v].name)}, {"utilization", json::number(point.utilization[v])}});
    };
    return json::object(
        {{"system", json::text(point.system)}, {"chunks", std::to_string(point.chunks)}, {"runs", by_variant(run)}});
  }

  std::string gap(const GapPoint& point) const {
    const auto run = [&](size_t v) {
      return json::object({{"variant", json::text(study_.variants[v].name)},
                           {"paper_time_ns", json::number(point.paper[v].time_ns)},
                           {"whole_messages", json::number(point.gaps[v].whole)},
                           {"in_segments", json::number(point.gaps[v].cut)}});
    };
    return json::object({{"system", json::text(point.system)},
                         {"mb", std::to_string(point.size_mib)},
                         {"chunks", std::to_string(point.chunks)},
                         {"runs", by_variant(run)}});
  }

  const PaperStudy& study_;
};

}  // namespace

std::string study_json(const PaperStudy& study) {
  return Writer(study).write();
}

}  // namespace trestle
