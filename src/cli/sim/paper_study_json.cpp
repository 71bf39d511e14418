#include "base/text/json.h"
#include "cli/sim/paper_study_text.h"
#include "study/paper_systems.h"

namespace trestle {
namespace {

constexpr uint32_t kJsonBins = 64;

Json percent_series(const SimLane& lane, double time_ns) {
  return json_list(activity(lane, time_ns, kJsonBins), rounded);
}

class Writer {
 public:
  explicit Writer(const PaperStudy& study) : study_(study) {}

  std::string write() const {
    const auto system = [this](const StudyResult& result) { return this->system(result); };
    const auto sweep = [this](const SweepPoint& point) { return this->sweep(point); };
    const auto gap = [this](const GapPoint& point) { return this->gap(point); };
    return json_text(Json::object({{"collective", to_string(study_.collective)},
                                   {"chunks", study_.chunks},
                                   {"reducing_switches", study_.reducing_switches},
                                   {"systems", json_list(study_.systems, system)},
                                   {"means", means()},
                                   {"ideal", mean("ideal", study_.ideal)},
                                   {"paper", study_.paper_systems ? paper() : nullptr},
                                   {"sweep", json_list(study_.sweep, sweep)},
                                   {"gap_model", to_string(study_.gap_model)},
                                   {"steps_gap", json_list(study_.gaps, gap)}})) +
           "\n";
  }

 private:
  // A list of one value per variant.
  template <class Value>
  Json by_variant(Value value) const {
    Json values = Json::array();
    for (size_t v = 0; v < study_.variants.size(); ++v) values.push_back(value(v));
    return values;
  }

  Json point(const StudyPoint& point) const {
    const auto run = [&](size_t v) {
      return Json::object({{"variant", study_.variants[v].name},
                           {"time_ns", rounded(point.runs[v].time_ns)},
                           {"utilization", rounded(point.runs[v].utilization)},
                           {"speedup", rounded(point.runs.front().time_ns / point.runs[v].time_ns)}});
    };
    return Json::object({{"mb", point.size_mib},
                         {"ideal_time_ns", rounded(point.ideal_time_ns)},
                         {"fluid_bound_ns", rounded(point.fluid_bound_ns)},
                         {"runs", by_variant(run)}});
  }

  Json system(const StudyResult& result) const {
    const auto series = [&](size_t v) {
      const SimView& view = result.largest[v];
      const auto lane = [&view](const SimLane& each) { return percent_series(each, view.time_ns); };
      return Json::object({{"variant", study_.variants[v].name}, {"dimensions", json_list(view.lanes, lane)}});
    };
    return Json::object({{"name", result.name},
                         {"points", json_list(result.points, [this](const StudyPoint& p) { return point(p); })},
                         {"activity", by_variant(series)}});
  }

  static Json mean(const std::string& name, const StudyMean& mean) {
    return Json::object({{"variant", name},
                         {"utilization", rounded(mean.utilization)},
                         {"speedup", rounded(mean.speedup)},
                         {"most_speedup", rounded(mean.most_speedup)}});
  }

  Json means() const {
    return by_variant([&](size_t v) { return mean(study_.variants[v].name, study_.means[v]); });
  }

  static Json paper() {
    return Json::object({{"baseline_utilization", rounded(kPaperReport.baseline_utilization)},
                         {"themis_fifo_utilization", rounded(kPaperReport.themis_fifo_utilization)},
                         {"themis_scf_utilization", rounded(kPaperReport.themis_scf_utilization)},
                         {"themis_fifo_speedup", rounded(kPaperReport.themis_fifo_speedup)},
                         {"themis_scf_speedup", rounded(kPaperReport.themis_scf_speedup)},
                         {"most_speedup", rounded(kPaperReport.most_speedup)}});
  }

  Json sweep(const SweepPoint& point) const {
    const auto run = [&](size_t v) {
      return Json::object({{"variant", study_.variants[v].name}, {"utilization", rounded(point.utilization[v])}});
    };
    return Json::object({{"system", point.system}, {"chunks", point.chunks}, {"runs", by_variant(run)}});
  }

  Json gap(const GapPoint& point) const {
    const auto run = [&](size_t v) {
      return Json::object({{"variant", study_.variants[v].name},
                           {"paper_time_ns", rounded(point.paper[v].time_ns)},
                           {"whole_messages", rounded(point.gaps[v].whole)},
                           {"in_segments", rounded(point.gaps[v].cut)}});
    };
    return Json::object(
        {{"system", point.system}, {"mb", point.size_mib}, {"chunks", point.chunks}, {"runs", by_variant(run)}});
  }

  const PaperStudy& study_;
};

}  // namespace

std::string study_json(const PaperStudy& study) {
  return Writer(study).write();
}

}  // namespace trestle
