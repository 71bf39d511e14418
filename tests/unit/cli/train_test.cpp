// `trestle train`: its options, its text and its JSON, and files of workloads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/train/train.h"
#include "cli/train/train_text.h"
#include "cli/train/workload_file.h"
#include "gradient/layers/layer_workload.h"
#include "gradient/networks.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace train_test {
namespace {

constexpr const char* kThreeTensors = R"({"tensors": [
  {"name": "w0", "bytes": 1, "forward_s": 2, "backward_s": 4},
  {"bytes": 2, "forward_s": 0, "backward_s": 3.0},
  {"name": "w2", "bytes": 3, "forward_s": 0, "backward_s": 2}]})";

// A file that is gone with its test.
class WorkloadFile {
 public:
  explicit WorkloadFile(const std::string& text) { std::ofstream(path_) << text; }
  ~WorkloadFile() { std::filesystem::remove(path_); }
  WorkloadFile(const WorkloadFile&) = delete;
  WorkloadFile& operator=(const WorkloadFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "trestle_workload_" + std::to_string(::getpid()) + ".json";
};

TrainOptions resnet50() {
  TrainOptions options;
  options.workload = "resnet50@dear";
  options.network = "26e-6,0.8e-9,0,64,ring";
  return options;
}

TEST(TrainJson, HasTheTimesAndTheGroupsOfEachPolicy) {
  const WorkloadFile file(kThreeTensors);
  TrainOptions options;
  options.workload = file.path();
  options.cost = "4,1";
  options.policies = "mgwfbp_paper,optimal,split_optimal:free,auto";
  options.json = true;
  const JsonValue json = read_json(train(options).value());
  EXPECT_EQ(keys_of(json),
            (std::set<std::string>{"workload", "tensors", "bytes", "forward_s", "backward_s", "policies", "refused"}));
  EXPECT_EQ(member(json, "tensors").whole, 3u);
  const std::vector<JsonValue>& policies = member(json, "policies").items;
  ASSERT_EQ(policies.size(), 4u);
  EXPECT_EQ(member(policies[0], "iteration_s").number, 21);
  const JsonValue& optimal = policies[1];
  EXPECT_EQ(member(optimal, "policy").text, "optimal");
  EXPECT_EQ(member(optimal, "iteration_s").number, 18);
  EXPECT_EQ(member(optimal, "exposed_s").number, 7);
  EXPECT_EQ(member(optimal, "speedup_over_wfbp").number, 22.0 / 18);
  EXPECT_EQ(member(optimal, "messages").whole, 2u);
  EXPECT_EQ(member(optimal, "updates_per_iteration").number, 1);
  EXPECT_EQ(member(optimal, "age").whole, 0u);
  ASSERT_EQ(member(optimal, "groups").items.size(), 2u);
  EXPECT_EQ(member(optimal, "groups").items[0].items[1].whole, 1u);
  EXPECT_EQ(member(optimal, "groups").items[1].items[0].whole, 2u);
  EXPECT_TRUE(member(optimal, "gather_groups").items.empty());
  EXPECT_EQ(member(optimal, "batches").items[0].whole, 1u);
  EXPECT_FALSE(member(policies[2], "gather_groups").items.empty());
  EXPECT_EQ(member(policies[3], "policy").text, "auto");
  EXPECT_EQ(member(policies[3], "chosen").text, "optimal");
}

TEST(TrainText, ShowsEveryPolicyBesideWfbp) {
  TrainOptions options = resnet50();
  const std::string text = train(options).value();
  for (const char* part : {"resnet50@dear: 161 tensors, 102.228 MB", "3276.000 us + 1.575 ns per byte",
                           "wfbp                            761.645        542.045     1.000x       161",
                           "dear:25M:lookahead", "us_byte"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  options.policies = "auto";
  EXPECT_NE(train(options).value().find("  split_optimal:free\n"), std::string::npos);
  options.policies = "wfbp";
  options.compact = true;
  EXPECT_NE(train(options).value().find("107 tensors"), std::string::npos);
}

TEST(TrainText, KnowsStepsThatTakeNoTime) {
  const WorkloadFile file(R"({"tensors": [{"bytes": 4, "forward_s": 0, "backward_s": 0}]})");
  TrainOptions options;
  options.workload = file.path();
  options.cost = "0,0";
  EXPECT_NE(train(options).value().find("1.000x"), std::string::npos);
  EXPECT_EQ(train(options).value().find("nan"), std::string::npos);
}

TEST(TrainText, SaysWhichPoliciesAreNotPossible) {
  const WorkloadFile file(R"({"tensors": [{"bytes": 1e15, "forward_s": 1, "backward_s": 1}]})");
  TrainOptions options;
  options.workload = file.path();
  options.cost = "1,1e-12";
  EXPECT_NE(train(options).value().find("priority is not possible: parts of 4000000 bytes"), std::string::npos);
  options.policies = "priority";
  EXPECT_NE(train(options).error().message.find("--policy: priority: parts of"), std::string::npos);
}

TEST(TrainText, ListsTheNetworksAndTheSourcesOfTheirTimes) {
  TrainOptions options;
  options.list = true;
  const std::string text = train(options).value();
  for (const std::string_view name : network_names()) EXPECT_NE(text.find(name), std::string::npos) << name;
  for (const NamedComputeTime& each : compute_times()) EXPECT_NE(text.find(each.source), std::string::npos);
}

// The networks of the training study are workloads too, as far as their ranks exchange nothing but gradients.
TEST(TrainOptions, KnowTheNetworksOfLayers) {
  TrainOptions options = resnet50();
  for (const Workload& network : workloads()) {
    options.workload = network.name;
    const Result<TrainReport> report = predict_training(options);
    const bool data = network.parallelism == Parallelism::kData;
    ASSERT_EQ(report.ok(), data) << (report.ok() ? "accepted" : report.error().message);
    if (!data) {
      EXPECT_EQ(report.error().message, std::string(network.name) +
                                            " exchanges more than gradients in its passes; "
                                            "trestle train study has it");
      continue;
    }
    double compute_ns = 0;
    for (const TrainingStep& step : training_steps(network, {}, GradientOverlap::kNone)) compute_ns += step.compute_ns;
    const GradientWorkload& tensors = report.value().tensors;
    EXPECT_NEAR(tensors.forward_s() + tensors.backward_s(), 1e-9 * compute_ns, 1e-12) << network.name;
    EXPECT_EQ(tensors.bytes(), parameters(network) * kElementBytes) << network.name;
  }
}

TEST(TrainOptions, GiveTheHalvesAndTheComputeTimes) {
  TrainOptions options;
  options.workload = "alexnet";
  options.compute = "0.01,0.02";
  options.cost = "1e-3,1e-9";
  TrainReport report = predict_training(options).value();
  EXPECT_NEAR(report.tensors.backward_s(), 0.02, 1e-12);
  EXPECT_EQ(report.link.link.all_gather, (MessageCost{0.5e-3, 0.5e-9}));
  options.cost_half = "1e-4,1e-10";
  report = predict_training(options).value();
  EXPECT_EQ(report.link.link.reduce_scatter, (MessageCost{1e-4, 1e-10}));
  EXPECT_EQ(report.link.link.all_reduce, (MessageCost{1e-3, 1e-9}));
}

// Of tensors that lie apart: twice in the one message of all, never in the messages of one tensor.
TEST(TrainOptions, CountCopies) {
  const WorkloadFile file(kThreeTensors);
  TrainOptions options;
  options.workload = file.path();
  options.cost = "4,1";
  options.policies = "wfbp,sync";
  const TrainReport free = predict_training(options).value();
  EXPECT_EQ(train(options).value().find("copies"), std::string::npos);
  options.copy = "0.5";
  const TrainReport counted = predict_training(options).value();
  const auto bytes = static_cast<double>(counted.tensors.bytes());
  EXPECT_EQ(counted.steps[0].time.iteration_s, free.steps[0].time.iteration_s);
  EXPECT_NEAR(counted.steps[1].time.iteration_s, free.steps[1].time.iteration_s + 2 * 0.5 * bytes, 1e-12);
  EXPECT_NE(train(options).value().find("copies"), std::string::npos);
  options.json = true;
  EXPECT_NE(train(options).value().find("\"copy_per_byte_s\":0.5"), std::string::npos) << train(options).value();
  // And on so many workers.
  options.cost.clear();
  options.network = "1,1,0,2,ring";
  options.scale = "2..4";
  options.policies = "sync";
  const std::string scaled = train(options).value();
  options.copy.clear();
  EXPECT_NE(train(options).value(), scaled);
  options.copy = "0";
  EXPECT_NE(train(options).value(), scaled);
}

std::string fault(TrainOptions options, std::string TrainOptions::*member, const char* value) {
  options.*member = value;
  const Result<std::string> printed = train(options);
  return printed.ok() ? "accepted" : printed.error().message;
}

TEST(TrainOptions, ThatAreWrongAreNamed) {
  const TrainOptions good = resnet50();
  EXPECT_EQ(fault(good, &TrainOptions::cost, "1,2"), "what messages cost: give one of --cost, --network and --topo");
  EXPECT_EQ(fault(good, &TrainOptions::network, ""), "what messages cost: give one of --cost, --network and --topo");
  EXPECT_EQ(fault(good, &TrainOptions::network, "1,2,3"),
            "--network: \"1,2,3\" is not alpha,beta,gamma,workers,algorithm");
  EXPECT_EQ(fault(good, &TrainOptions::network, "1,-2,3,4,ring"), "--network: -2 is negative");
  EXPECT_EQ(fault(good, &TrainOptions::network, "1,nan,3,4,ring"), "--network: \"nan\" is not a number");
  EXPECT_EQ(fault(good, &TrainOptions::network, "1,2,3,0,ring"), "--network: 0 is no number of workers");
  EXPECT_NE(fault(good, &TrainOptions::network, "1,2,3,4,star").find("there are binary_tree"), std::string::npos);
  EXPECT_EQ(fault(good, &TrainOptions::cost_half, "1,2"), "--cost-half: goes with --cost");
  EXPECT_EQ(fault(good, &TrainOptions::copy, "-1e-9"), "--copy: -1e-9 is negative");
  EXPECT_EQ(fault(good, &TrainOptions::copy, "1,2"), "--copy: \"1,2\" is not a number");
  EXPECT_NE(fault(good, &TrainOptions::policies, "fastest").find("--policy: \"fastest\" is no policy"),
            std::string::npos);
  EXPECT_EQ(fault(good, &TrainOptions::policies, ""), "--policy: names no policy");
  EXPECT_EQ(fault(good, &TrainOptions::allow, "all"),
            "--allow: \"all\" is no liberty; there are stale and compression");
  EXPECT_EQ(fault(good, &TrainOptions::compute, "1"), "--compute: \"1\" is not forward,backward");
  EXPECT_EQ(fault(good, &TrainOptions::workload, "alexnet"),
            "--workload: alexnet has no compute time; say forward and backward seconds with --compute");
  EXPECT_EQ(
      fault(good, &TrainOptions::workload, "resnet51"),
      "workload file resnet51: cannot be opened: No such file or directory (and it is no built-in workload: --list "
      "shows these)");
  EXPECT_EQ(fault(good, &TrainOptions::workload, "/"),
            "workload file /: is not a file (and it is no built-in workload: --list shows these)");
}

TEST(WorkloadFiles, AreReadInForwardOrder) {
  const GradientWorkload workload = parse_workload(kThreeTensors, "w.json").value();
  ASSERT_EQ(workload.tensors.size(), 3u);
  EXPECT_EQ(workload.tensors[0], (GradientTensor{"w0", 1, 2, 4}));
  EXPECT_EQ(workload.tensors[1], (GradientTensor{"", 2, 0, 3}));
}

std::string file_fault(const std::string& json) {
  const Result<GradientWorkload> read = parse_workload(json, "w.json");
  return read.ok() ? "accepted" : read.error().message;
}

TEST(WorkloadFiles, ThatAreWrongAreNamedByLineAndField) {
  const auto tensor = [](const std::string& members) { return "{\"tensors\": [\n{\n" + members + "}]}"; };
  EXPECT_EQ(file_fault(tensor("\"byte\": 4")),
            "w.json:3: tensor 0: byte: unknown field; did you mean bytes? Known are name bytes forward_s backward_s");
  EXPECT_EQ(file_fault(tensor("\"bytes\": 4,\n\"forward_s\": -1")),
            "w.json:4: tensor 0: forward_s: must not be negative");
  EXPECT_EQ(file_fault(tensor("\"bytes\": 4.5")), "w.json:3: tensor 0: bytes: must be a whole number");
  EXPECT_EQ(file_fault(tensor("\"bytes\": -1")), "w.json:3: tensor 0: bytes: must not be negative");
  EXPECT_EQ(file_fault(tensor("\"bytes\": 1e300")), "w.json:3: tensor 0: bytes: is too large");
  EXPECT_EQ(file_fault(tensor("\"bytes\": \"4\"")), "w.json:3: tensor 0: bytes: must be a number, not a string");
  EXPECT_EQ(file_fault(tensor("\"name\": 4")), "w.json:3: tensor 0: name: must be a string, not a number");
  EXPECT_EQ(file_fault(tensor("\"bytes\": 4,\n\"forward_s\": 1")), "w.json:2: tensor 0: backward_s: is missing");
  EXPECT_EQ(file_fault("{\"tensors\": []}"), "w.json:1: tensors: must be a list of at least one");
  EXPECT_EQ(file_fault("{\"tensors\": [4]}"), "w.json:1: tensor 0: must be an object, not a number");
  EXPECT_EQ(file_fault("{\"layers\": []}"), "w.json:1: layers: unknown field; known is tensors");
  EXPECT_EQ(file_fault("[]"), "w.json:1: must be an object with the field tensors, not a list");
  EXPECT_NE(file_fault("{"), "accepted");
}

}  // namespace
}  // namespace train_test
}  // namespace trestle
