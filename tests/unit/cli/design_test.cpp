// The output of `trestle sim advise` and `trestle train study`.
#include <gtest/gtest.h>

#include "cli/sim/advice_text.h"
#include "cli/train/study.h"
#include "cli/train/study_text.h"
#include "study/paper_systems.h"

namespace trestle {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<NamedAdvice> advice_on_first_system() {
  const Topology topology = to_topology(paper_systems()[0]);
  return {{"2D", advise({topology, 1 << 20, 4}).value()}};
}

TEST(AdviceText, SaysBothVerdictsAndWhereMoreHelps) {
  const std::string text = advice_text(advice_on_first_system());
  EXPECT_TRUE(holds(text, "all-reduce of 1M in 4 chunks")) << text;
  EXPECT_TRUE(holds(text, "2D: 16x64 ranks, 1200, 800 Gb/s per rank")) << text;
  EXPECT_TRUE(holds(text, "1 and 2      0.098  over-provisioned   over-provisioned   78.8 Gb/s of 800")) << text;
  EXPECT_TRUE(holds(text, "helps most: the baseline on dimension 1")) << text;
}

TEST(AdviceText, IsOneJsonObject) {
  const std::string json = advice_json(advice_on_first_system());
  EXPECT_TRUE(json.starts_with("{\"bytes\":1048576,\"chunks\":4,\"systems\":[{\"system\":\"2D\"")) << json;
  EXPECT_TRUE(holds(json, "\"by_bytes\":\"over-provisioned\"")) << json;
  EXPECT_TRUE(holds(json, "\"helps_baseline\":1")) << json;
  EXPECT_TRUE(json.ends_with("]}\n")) << json;
}

TrainingStudy small_study(const std::string& workload, const Topology& topology) {
  TrainingRequest request;
  request.systems = {{"small", topology}};
  request.workload = workload;
  request.chunks = 4;
  return study_training(request).value();
}

TEST(TrainingText, PrintsEveryAssumption) {
  const std::string text = training_text(small_study("DLRM", to_topology(paper_systems()[0])));
  for (const std::string_view assumption : common_assumptions()) EXPECT_TRUE(holds(text, std::string(assumption)));
  for (const std::string_view assumption : workloads()[2].assumptions) {
    EXPECT_TRUE(holds(text, "assumed: " + std::string(assumption)));
  }
  EXPECT_TRUE(holds(text, "requested: 4 chunks")) << text;
  EXPECT_TRUE(holds(text, "DLRM: recommendation")) << text;
  EXPECT_FALSE(holds(text, "diff")) << "another system than the paper's was compared with it";
  EXPECT_FALSE(holds(text, "compute x")) << text;
}

TEST(TrainingText, PrintsThePapersNumbersBesideThoseOnItsSystems) {
  TrainingRequest request;
  request.workload = "DLRM";
  request.chunks = 4;
  const TrainingStudy study = study_training(request).value();
  EXPECT_TRUE(holds(training_text(study), "(the paper's most: themis 1.77)")) << training_text(study);
  EXPECT_TRUE(holds(training_text(study), "compute x ")) << training_text(study);
  EXPECT_TRUE(holds(training_json(study), "\"fitted_means\":{\"speedup\":[1,")) << training_json(study);
}

TEST(TrainingText, SaysWhatIsNotPossible) {
  Topology topology = to_topology(paper_systems()[0]);
  topology.dimensions[1].size = 2;
  const TrainingStudy study = small_study("Transformer-1T", topology);
  EXPECT_TRUE(holds(training_text(study), "not possible: small: a model on 128 ranks")) << training_text(study);
  EXPECT_TRUE(holds(training_json(study), "\"refused\":\"small: a model on 128 ranks"));
}

TEST(TrainingStudy, NamesOptionsThatAreWrong) {
  const auto fault = [](std::string StudyOptions::*member, const char* value) {
    StudyOptions options;
    options.*member = value;
    const Result<std::string> printed = study_iterations(options);
    return printed.ok() ? "accepted" : printed.error().message;
  };
  EXPECT_EQ(fault(&StudyOptions::chunks, "0"), "--chunks: 0 is not from 1 to 65536");
  EXPECT_EQ(fault(&StudyOptions::batch, "many").substr(0, 9), "--batch: ");
  EXPECT_EQ(fault(&StudyOptions::overlap, "all"), "--overlap: \"all\" is neither none nor buckets");
  EXPECT_NE(fault(&StudyOptions::topology_file, "/nonexistent/t.json").find("/nonexistent/t.json"), std::string::npos);
  EXPECT_NE(fault(&StudyOptions::workload, "AlexNet").find("no workload \"AlexNet\""), std::string::npos);
}

TEST(TrainingText, IsOneJsonObject) {
  const std::string json = training_json(small_study("GNMT", to_topology(paper_systems()[0])));
  EXPECT_TRUE(json.starts_with("{\"assumptions\":[\"accelerator: ")) << json;
  EXPECT_TRUE(holds(json, "\"overlap\":\"none\",\"chunks\":4,\"variants\":[\"baseline\"")) << json;
  EXPECT_TRUE(holds(json, "\"paper\":{\"themis\":1.3,")) << json;
  EXPECT_FALSE(holds(json, "fitted")) << json;
  EXPECT_TRUE(json.ends_with("]}\n")) << json;
}

}  // namespace
}  // namespace trestle
