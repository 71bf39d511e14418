// The study of the Themis paper (arXiv 2110.04478, section 6): `trestle sim paper`. Computes the results; the formats
// are in paper_study_text.h and paper_study_svg.h. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "cli/sim/sim_view.h"
#include "cli/sim/variants.h"
#include "sim/simulate_schedule.h"
#include "study/paper_systems.h"

namespace trestle {

inline constexpr uint32_t kStudySegments = 32;  // of a step's message, if messages are cut

struct StudyRequest {
  Collective collective = Collective::kAllReduce;  // or kReduceScatter, kAllGather
  uint32_t chunks = 64;
  std::vector<NamedTopology> systems;  // empty: the paper's six
  // Of the whole data: before a reduce-scatter, after an all-gather.
  std::vector<uint64_t> sizes_mib = {100, 250, 500, 750, 1000};
  std::vector<uint32_t> sweep_chunks = {4, 8, 16, 32, 64, 128, 256, 512};
  bool reducing_switches = false;  // every switch adds and multicasts
  // The model that the paper's model is compared with: steps, or engine (only for the fewest messages, takes minutes).
  SimModel gap_model = SimModel::kSteps;
};

struct StudyRun {
  double time_ns = 0;
  double utilization = 0;  // 0 to 1
};

struct StudyPoint {
  uint64_t size_mib = 0;
  double ideal_time_ns = 0;
  double fluid_bound_ns = 0;
  std::vector<StudyRun> runs;  // by variant; the first variant is the baseline
};

struct StudyResult {
  std::string name;
  std::vector<StudyPoint> points;
  std::vector<SimView> largest;  // by variant: the point of the largest size
};

// Means of the points' values over all systems and sizes.
struct StudyMean {
  double utilization = 0;
  double speedup = 0;  // against the baseline
  double most_speedup = 0;
};

struct SweepPoint {
  std::string system;
  uint32_t chunks = 0;
  std::vector<double> utilization;  // by variant, mean over the smallest and the largest size
};

// How much longer the same schedule takes in study.gap_model, where phases consist of steps: (steps - whole phases) /
// whole phases.
struct StepsGap {
  double whole = 0;  // each step sends one message in one piece
  double cut = 0;    // in kStudySegments segments
  double cut_time_ns = 0;
};

struct GapPoint {
  std::string system;
  uint64_t size_mib = 0;
  uint32_t chunks = 0;
  std::vector<StudyRun> paper;  // by variant; in the model of whole phases
  std::vector<StepsGap> gaps;   // by variant
};

struct PaperStudy {
  Collective collective = Collective::kAllReduce;
  uint32_t chunks = 64;
  bool paper_systems = true;  // comparable with the paper's averages
  bool reducing_switches = false;
  std::vector<ScheduleVariant> variants;
  std::vector<StudyResult> systems;
  std::vector<StudyMean> means;  // by variant
  StudyMean ideal;
  std::vector<SweepPoint> sweep;
  SimModel gap_model = SimModel::kSteps;
  // Empty if switches reduce, because only the paper's model has such switches.
  std::vector<GapPoint> gaps;
};

Result<PaperStudy> study_paper(const StudyRequest& request);

}  // namespace trestle
