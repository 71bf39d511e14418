// `trestle sim paper` on a small system, and the candidates of `trestle plan`.
#include <set>

#include "cli/plan/plan_text.h"
#include "cli/sim/paper_study.h"
#include "cli/sim/paper_study_svg.h"
#include "cli/sim/paper_study_text.h"
#include "support/grids.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

Topology grid() {
  return grid_of({{8, 800'000, 700}, {8, 400'000, 700}});
}

StudyRequest small_study() {
  StudyRequest request;
  request.systems = {{"small & <fast>", grid()}};
  request.sizes_mib = {10, 100};
  request.sweep_chunks = {4, 16};
  request.chunks = 16;
  return request;
}

TEST(Study, ComparesEveryVariantWithTheBaseline) {
  const PaperStudy result = study_paper(small_study()).value();
  EXPECT_EQ(result.variants.front().name, "baseline");
  ASSERT_EQ(result.means.size(), result.variants.size());
  EXPECT_DOUBLE_EQ(result.means.front().speedup, 1);
  for (const StudyMean& mean : result.means) EXPECT_LE(mean.speedup, result.ideal.speedup);
  for (const StudyPoint& point : result.systems.at(0).points) {
    for (const StudyRun& run : point.runs) EXPECT_GE(run.time_ns * (1 + 1e-9), point.fluid_bound_ns);
  }
  EXPECT_EQ(result.sweep.size(), 2u);
  EXPECT_EQ(result.gaps.size(), 2u);
  EXPECT_EQ(xml_fault(study_svg(result)), "");
  EXPECT_EQ(study_text(result).find("56.31"), std::string::npos) << "the paper's averages are of other systems";
  EXPECT_EQ(keys_of(read_json(study_json(result))),
            "collective chunks reducing_switches systems means ideal paper sweep gap_model steps_gap");
}

TEST(Study, HoldsThePapersModelAgainstTheEngine) {
  StudyRequest request = small_study();
  request.sizes_mib = {1};
  request.chunks = 8;
  request.sweep_chunks.clear();
  request.gap_model = SimModel::kEngine;
  const PaperStudy study = study_paper(request).value();
  EXPECT_EQ(study.gaps.size(), 1u);
  expect_parts(study_text(study), {"model engine"});
}

TEST(Study, SwitchesThatReduceSendLess) {
  StudyRequest request = small_study();
  const double plain_ns = study_paper(request).value().systems[0].points[0].ideal_time_ns;
  request.reducing_switches = true;
  const PaperStudy study = study_paper(request).value();
  EXPECT_LT(study.systems[0].points[0].ideal_time_ns, 0.7 * plain_ns);
  EXPECT_TRUE(study.gaps.empty());
}

TEST(Plan, ListsCandidatesFastestFirstAndDrawsTheChosenOne) {
  SelectionRequest request;
  request.bytes = uint64_t{64} << 20;
  const std::vector<PlanCandidate> candidates = plan_candidates(request, grid(), {}).value();
  EXPECT_TRUE(
      std::ranges::is_sorted(candidates, {}, [](const PlanCandidate& each) { return each.prediction.time_ps; }));
  std::set<std::string> names;
  for (const PlanCandidate& candidate : candidates) names.insert(candidate.policy);
  for (const char* name : {"", "baseline", "themis+fifo", "themis+scf", "lp-split"})
    EXPECT_TRUE(names.contains(name)) << name;
  const auto chosen = std::ranges::find(candidates, true, &PlanCandidate::chosen);
  ASSERT_NE(chosen, candidates.end());
  EXPECT_EQ(chosen->schedule, select_schedule(request, grid(), {}).value());
  expect_parts(candidates_text(candidates, grid()), {" * ", "1: "});
  expect_parts(picture_text(*chosen, grid()), {"dimension 2: 8 ranks"});
}

}  // namespace
}  // namespace trestle
