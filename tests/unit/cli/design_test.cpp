// The output of `trestle sim advise` and `trestle train study`.
#include "cli/sim/advice_text.h"
#include "cli/train/study.h"
#include "cli/train/study_text.h"
#include "study/paper_systems.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

TEST(AdviceText, SaysBothVerdictsAndWhereMoreHelps) {
  const std::vector<NamedAdvice> all = {{"2D", advise({to_topology(paper_systems()[0]), 1 << 20, 4}).value()}};
  expect_parts(advice_text(all), {"all-reduce of 1M in 4 chunks", "2D: 16x64 ranks, 1200, 800 Gb/s per rank",
                                  "1 and 2      0.098  over-provisioned   over-provisioned   78.8 Gb/s of 800",
                                  "helps most: the baseline on dimension 1"});
  Json json = read_json(advice_json(all));
  EXPECT_EQ(keys_of(json), "bytes chunks systems");
  EXPECT_EQ(json["bytes"], 1 << 20);
  EXPECT_EQ(keys_of(json["systems"][0]),
            "system ideal_time_ns fluid_bound_ns pairs policies best one_more_gbps helps_baseline helps_best alike");
  EXPECT_EQ(json["systems"][0]["pairs"][0]["by_bytes"], "over-provisioned");
  EXPECT_EQ(json["systems"][0]["helps_baseline"], 1);
  EXPECT_EQ(advice_json({}), "{\"systems\":[]}\n");
}

TrainingRequest request_for(const char* workload) {
  TrainingRequest request;
  request.workload = workload;
  request.chunks = 4;
  return request;
}

TEST(TrainingText, PrintsEveryAssumptionAndComparesOnlyThePapersSystems) {
  TrainingRequest request = request_for("DLRM");
  const TrainingStudy papers = study_training(request).value();
  expect_parts(training_text(papers), {"(the paper's most: themis 1.77)", "compute x "});
  EXPECT_EQ(read_json(training_json(papers))["workloads"][0]["fitted_means"]["speedup"][0], 1);
  request.systems = {{"small", to_topology(paper_systems()[0])}};
  const TrainingStudy other = study_training(request).value();
  const std::string text = training_text(other);
  for (const std::string_view each : common_assumptions()) EXPECT_NE(text.find(each), std::string::npos) << each;
  for (const std::string_view each : workloads()[2].assumptions) EXPECT_NE(text.find(each), std::string::npos) << each;
  expect_parts(text, {"requested: 4 chunks", "DLRM: recommendation"});
  EXPECT_EQ(text.find("diff"), std::string::npos) << "another system than the paper's was compared with it";
  EXPECT_EQ(text.find("compute x"), std::string::npos) << text;
  Json json = read_json(training_json(other));
  EXPECT_EQ(keys_of(json), "assumptions accelerator overlap chunks variants workloads");
  EXPECT_EQ(keys_of(json["workloads"][0]), "name source assumptions parameters samples compute_ns paper systems means");
  EXPECT_EQ(json["variants"][0], "baseline");
}

TEST(TrainingText, SaysWhatIsNotPossible) {
  TrainingRequest request = request_for("Transformer-1T");
  request.systems = {{"small", to_topology(paper_systems()[0])}};
  request.systems[0].topology.dimensions[1].size = 2;
  const TrainingStudy study = study_training(request).value();
  expect_parts(training_text(study), {"not possible: small: a model on 128 ranks"});
  expect_parts(training_json(study), {"\"refused\":\"small: a model on 128 ranks"});
}

TEST(TrainingStudy, NamesOptionsThatAreWrong) {
  constexpr struct {
    std::string StudyOptions::*member;
    const char* value;
    const char* part;
  } kRefusals[] = {
      {&StudyOptions::chunks, "0", "--chunks: 0 is not from 1 to 65536"},
      {&StudyOptions::batch, "many", "--batch: "},
      {&StudyOptions::overlap, "all", "--overlap: \"all\" is neither none nor buckets"},
      {&StudyOptions::topology_file, "/nonexistent/t.json", "/nonexistent/t.json"},
      {&StudyOptions::workload, "GNTM", "'GNTM' is not a workload; did you mean GNMT?"},
  };
  for (const auto& [member, value, part] : kRefusals) {
    StudyOptions options;
    options.*member = value;
    expect_parts(refusal_of(study_iterations(options)), {part});
  }
}

}  // namespace
}  // namespace trestle
