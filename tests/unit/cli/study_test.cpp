// `trestle sim paper` on a small system, and the candidates of `trestle plan`.
#include "cli/plan/plan_text.h"
#include "cli/sim/paper_study.h"
#include "cli/sim/paper_study_svg.h"
#include "cli/sim/paper_study_text.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

Topology grid() {
  Topology topology;
  for (const uint64_t mbps : {uint64_t{800'000}, uint64_t{400'000}}) {
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = 8;
    dimension.bandwidth_mbps = mbps;
    dimension.latency_ns = 700;
  }
  return topology;
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
  const auto study = study_paper(small_study());
  ASSERT_TRUE(study.ok()) << study.error().message;
  const PaperStudy& result = study.value();
  EXPECT_EQ(result.variants.front().name, "baseline");
  ASSERT_EQ(result.means.size(), result.variants.size());
  EXPECT_DOUBLE_EQ(result.means.front().speedup, 1);
  for (const StudyMean& mean : result.means) EXPECT_LE(mean.speedup, result.ideal.speedup);
  ASSERT_EQ(result.systems.size(), 1u);
  for (const StudyPoint& point : result.systems.front().points) {
    for (const StudyRun& run : point.runs) EXPECT_GE(run.time_ns * (1 + 1e-9), point.fluid_bound_ns);
  }
  EXPECT_EQ(result.sweep.size(), 2u);
  EXPECT_EQ(result.gaps.size(), 2u);
  EXPECT_EQ(xml_fault(study_svg(result)), "");
  const std::string text = study_text(result);
  EXPECT_EQ(text.find("56.31"), std::string::npos) << "the paper's averages are of other systems";
  const JsonValue json = read_json(study_json(result));
  EXPECT_EQ(keys_of(json), (std::set<std::string>{"collective", "chunks", "reducing_switches", "systems", "means",
                                                  "ideal", "paper", "sweep", "gap_model", "steps_gap"}));
}

TEST(Study, HoldsThePapersModelAgainstTheEngine) {
  StudyRequest request = small_study();
  request.sizes_mib = {1};
  request.chunks = 8;
  request.sweep_chunks.clear();
  request.gap_model = SimModel::kEngine;
  const auto study = study_paper(request);
  ASSERT_TRUE(study.ok()) << study.error().message;
  ASSERT_EQ(study.value().gaps.size(), 1u);
  EXPECT_NE(study_text(study.value()).find("model engine"), std::string::npos);
}

TEST(Study, SwitchesThatReduceSendLess) {
  StudyRequest request = small_study();
  const double plain_ns = study_paper(request).value().systems[0].points[0].ideal_time_ns;
  request.reducing_switches = true;
  const auto study = study_paper(request);
  ASSERT_TRUE(study.ok()) << study.error().message;
  EXPECT_LT(study.value().systems[0].points[0].ideal_time_ns, 0.7 * plain_ns);
  EXPECT_TRUE(study.value().gaps.empty());
}

TEST(Plan, ListsCandidatesFastestFirstAndDrawsTheChosenOne) {
  SelectionRequest request;
  request.bytes = uint64_t{64} << 20;
  SelectionConfig config;
  const auto candidates = plan_candidates(request, grid(), config);
  ASSERT_TRUE(candidates.ok()) << candidates.error().message;
  const PlanCandidate* chosen = nullptr;
  std::set<std::string> names;
  for (size_t i = 0; i < candidates.value().size(); ++i) {
    const PlanCandidate& candidate = candidates.value()[i];
    names.insert(candidate.policy);
    if (candidate.chosen) chosen = &candidate;
    if (i == 0) continue;
    EXPECT_GE(candidate.prediction.time_ps, candidates.value()[i - 1].prediction.time_ps);
  }
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->schedule, select_schedule(request, grid(), config).value());
  for (const char* name : {"", "baseline", "themis+fifo", "themis+scf", "lp-split"})
    EXPECT_TRUE(names.contains(name)) << name;
  const std::string table = candidates_text(candidates.value(), grid());
  EXPECT_NE(table.find(" * "), std::string::npos) << table;
  EXPECT_NE(table.find("1: "), std::string::npos) << table;
  EXPECT_NE(picture_text(*chosen, grid()).find("dimension 2: 8 ranks"), std::string::npos);
}

}  // namespace
}  // namespace trestle
