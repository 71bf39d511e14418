// `trestle train`: its options, its text and its JSON, and files of workloads.
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

TrainOptions resnet50() {
  TrainOptions options;
  options.workload = "resnet50@dear";
  options.network = "26e-6,0.8e-9,0,64,ring";
  return options;
}

TrainOptions of_file(const NamedFile& file, const char* cost, const char* policies = "all") {
  TrainOptions options;
  options.workload = file.path();
  options.cost = cost;
  options.policies = policies;
  return options;
}

TEST(TrainJson, HasTheTimesAndTheGroupsOfEachPolicy) {
  const NamedFile file("three.json", kThreeTensors);
  TrainOptions options = of_file(file, "4,1", "mgwfbp_paper,optimal,split_optimal:free,auto");
  options.json = true;
  Json json = read_json(train(options).value());
  EXPECT_EQ(keys_of(json), "workload tensors bytes forward_s backward_s policies refused");
  EXPECT_EQ(json["tensors"], 3);
  Json& policies = json["policies"];
  ASSERT_EQ(policies.size(), 4u);
  EXPECT_EQ(policies[0]["iteration_s"], 21);
  EXPECT_EQ(policies[1], Json::parse(R"({"policy": "optimal", "iteration_s": 18, "exposed_s": 7,
      "speedup_over_wfbp": 1.2222222222222223, "messages": 2, "updates_per_iteration": 1, "age": 0,
      "groups": [[0, 1], [2, 2]], "gather_groups": [], "batches": [1]})"));
  EXPECT_FALSE(policies[2]["gather_groups"].empty());
  EXPECT_EQ(policies[3]["policy"], "auto");
  EXPECT_EQ(policies[3]["chosen"], "optimal");
}

TEST(TrainText, ShowsEveryPolicyBesideWfbp) {
  TrainOptions options = resnet50();
  expect_parts(train(options).value(), {"resnet50@dear: 161 tensors, 102.228 MB", "3276.000 us + 1.575 ns per byte",
                                        "wfbp                            761.645        542.045     1.000x       161",
                                        "dear:25M:lookahead", "us_byte"});
  options.policies = "auto";
  expect_parts(train(options).value(), {"  split_optimal:free\n"});
  options.policies = "wfbp";
  options.compact = true;
  expect_parts(train(options).value(), {"107 tensors"});
}

TEST(TrainText, KnowsStepsThatTakeNoTimeAndPoliciesThatAreNotPossible) {
  const NamedFile nothing("nothing.json", R"({"tensors": [{"bytes": 4, "forward_s": 0, "backward_s": 0}]})");
  const std::string text = train(of_file(nothing, "0,0")).value();
  expect_parts(text, {"1.000x"});
  EXPECT_EQ(text.find("nan"), std::string::npos);
  const NamedFile large("large.json", R"({"tensors": [{"bytes": 1e15, "forward_s": 1, "backward_s": 1}]})");
  expect_parts(train(of_file(large, "1,1e-12")).value(), {"priority is not possible: parts of 4000000 bytes"});
  expect_parts(refusal_of(train(of_file(large, "1,1e-12", "priority"))), {"--policy: priority: parts of"});
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
    ASSERT_EQ(report.ok(), data) << refusal_of(report);
    if (!data) {
      expect_parts(refusal_of(report), {"exchanges more than gradients in its passes; trestle train study has it"});
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
  const NamedFile file("apart.json", kThreeTensors);
  TrainOptions options = of_file(file, "4,1", "wfbp,sync");
  const TrainReport free = predict_training(options).value();
  EXPECT_EQ(train(options).value().find("copies"), std::string::npos);
  options.copy = "0.5";
  const TrainReport counted = predict_training(options).value();
  EXPECT_EQ(counted.steps[0].time.iteration_s, free.steps[0].time.iteration_s);
  EXPECT_NEAR(counted.steps[1].time.iteration_s, free.steps[1].time.iteration_s + 2 * 0.5 * 6, 1e-12);
  expect_parts(train(options).value(), {"copies"});
  options.json = true;
  EXPECT_EQ(read_json(train(options).value())["copy_per_byte_s"], 0.5);
  // And on so many workers.
  options.cost.clear();
  options.network = "1,1,0,2,ring";
  options.scale = "2..4";
  options.policies = "sync";
  const std::string scaled = train(options).value();
  options.copy = "0";
  EXPECT_NE(train(options).value(), scaled);
}

using Member = std::string TrainOptions::*;
struct Refusal {
  std::vector<std::pair<Member, const char*>> options;  // of resnet50()
  const char* part;                                     // of the sentence
};

const Refusal kTrainRefusals[] = {
    {{{&TrainOptions::cost, "1,2"}}, "what messages cost: give one of --cost, --network and --topo"},
    {{{&TrainOptions::topo, "/nowhere.json"}}, "what messages cost: give one of --cost, --network and --topo"},
    {{{&TrainOptions::network, ""}}, "what messages cost: give one of --cost, --network and --topo"},
    {{{&TrainOptions::network, ""}, {&TrainOptions::topo, "/nowhere.json"}},
     "--topo: topology file /nowhere.json: cannot be opened: No such file or directory"},
    {{{&TrainOptions::network, "1,2,3"}}, "--network: \"1,2,3\" is not alpha,beta,gamma,workers,algorithm"},
    {{{&TrainOptions::network, "1,-2,3,4,ring"}}, "--network: -2 is negative"},
    {{{&TrainOptions::network, "1,nan,3,4,ring"}}, "--network: \"nan\" is not a number"},
    {{{&TrainOptions::network, "1,2,3,0,ring"}}, "--network: 0 is no number of workers"},
    {{{&TrainOptions::network, "1,2,3,4,rign"}}, "did you mean ring? There are binary_tree"},
    {{{&TrainOptions::cost_half, "1,2"}}, "--cost-half: goes with --cost"},
    {{{&TrainOptions::copy, "-1e-9"}}, "--copy: -1e-9 is negative"},
    {{{&TrainOptions::copy, "1,2"}}, "--copy: \"1,2\" is not a number"},
    {{{&TrainOptions::policies, "fastest"}}, "--policy: 'fastest' is not a policy; there are naive"},
    {{{&TrainOptions::policies, ""}}, "--policy: names no policy"},
    {{{&TrainOptions::policies, "topk:0.1"}, {&TrainOptions::network, ""}, {&TrainOptions::cost, "1,1"}},
     "--policy: topk:0.1: needs the number of workers"},
    {{{&TrainOptions::allow, "all"}}, "--allow: 'all' is not a liberty; there are stale, compression"},
    {{{&TrainOptions::compute, "1"}}, "--compute: \"1\" is not forward,backward"},
    {{{&TrainOptions::workload, "alexnet"}},
     "--workload: alexnet has no compute time; say forward and backward seconds with --compute"},
    {{{&TrainOptions::workload, "resnet51"}},
     "workload file resnet51: cannot be opened: No such file or directory (and it is no built-in workload: --list "
     "shows these)"},
    {{{&TrainOptions::workload, "/"}}, "workload file /: is not a file (and it is no built-in workload"},
    {{{&TrainOptions::plot, "/nonexistent/x.svg"}}, "/nonexistent/x.svg: cannot be written: No such file or directory"},
    {{{&TrainOptions::links, "0"}}, "--links: a mu of 0 is not above 0"},
    {{{&TrainOptions::links, "1,-2"}}, "--links: -2 is negative"},
    {{{&TrainOptions::links, "1,0.5"}}, "--links: a mu of 0.5 is below 1; the first link must be the fastest"},
    {{{&TrainOptions::links, "1,2000"}}, "--links: a mu of 2000 is above 1000"},
    {{{&TrainOptions::links, "1,,2"}}, "--links: \"\" is not a number"},
    {{{&TrainOptions::scale, "64"}}, "--scale: \"64\" is not a range like 4..2048"},
    {{{&TrainOptions::scale, "8..4"}}, "--scale: 8..4 ends below its beginning"},
    {{{&TrainOptions::scale, "0..4"}}, "--scale: 0 is not from 1 to 1073741824"},
    {{{&TrainOptions::scale, "1..4"}, {&TrainOptions::network, ""}},
     "--scale: needs --network, whose number of workers it replaces"},
    {{{&TrainOptions::scale, "1..4"}, {&TrainOptions::cost, "1,1"}}, "--scale: goes with --network alone"},
    {{{&TrainOptions::loss, "1,2,3"}}, "--loss: \"1,2,3\" is not loss,least,rate,drift,deviation,batch"},
    {{{&TrainOptions::loss, "1,0,nan,1,1,1"}}, "--loss: \"nan\" is not a number"},
    {{{&TrainOptions::loss, "1,0,0.1,-1,-2,1"}}, "--loss: -2 is negative"},
    {{{&TrainOptions::loss, "1,0,0.1,-1,2,0"}}, "--loss: a batch of 0 samples"},
    {{{&TrainOptions::loss, "1,0,0.1,-1,2,1"}, {&TrainOptions::loss_merged, "median"}},
     "--loss-merged: \"median\" is neither sum nor mean"},
    {{{&TrainOptions::loss, "1,0,0.1,-1,2,1"}, {&TrainOptions::loss_epsilon, "-1"}}, "--loss-epsilon: -1 is negative"},
    {{{&TrainOptions::loss_epsilon, "1"}}, "--loss-epsilon: goes with --loss"},
    {{{&TrainOptions::loss_merged, "sum"}}, "--loss-merged: goes with --loss"},
    {{{&TrainOptions::preset, "dear_table3"}},
     "--preset: 'dear_table3' is not a preset; did you mean dear_table2? There are mgwfbp_fig10, mgwfbp_fig11, "},
    {{{&TrainOptions::preset, "dear_table2"}}, "--preset: goes with --json and --plot alone"},
};

TEST(TrainOptions, ThatAreWrongAreNamed) {
  for (const auto& [members, part] : kTrainRefusals) {
    TrainOptions options = resnet50();
    for (const auto& [member, value] : members) options.*member = value;
    const std::string sentence = refusal_of(train(options));
    EXPECT_TRUE(sentence.find(part) != std::string::npos && sentence.find('\n') == std::string::npos) << part << " in\n"
                                                                                                      << sentence;
  }
}

TEST(WorkloadFiles, AreReadInForwardOrder) {
  const GradientWorkload workload = parse_workload(kThreeTensors, "w.json").value();
  ASSERT_EQ(workload.tensors.size(), 3u);
  EXPECT_EQ(workload.tensors[0], (GradientTensor{"w0", 1, 2, 4}));
  EXPECT_EQ(workload.tensors[1], (GradientTensor{"", 2, 0, 3}));
}

TEST(WorkloadFiles, ThatAreWrongAreNamedByLineAndField) {
  constexpr std::pair<const char*, const char*> kTensors[] = {
      {"\"byte\": 4",
       "3: tensor 0: 'byte' is not a field; did you mean bytes? There are name, bytes, forward_s, "
       "backward_s"},
      {"\"bytes\": 4,\n\"forward_s\": -1", "4: tensor 0: forward_s: must not be negative"},
      {"\"bytes\": 4.5", "3: tensor 0: bytes: must be a whole number"},
      {"\"bytes\": -1", "3: tensor 0: bytes: must not be negative"},
      {"\"bytes\": 1e300", "3: tensor 0: bytes: is too large"},
      {"\"bytes\": \"4\"", "3: tensor 0: bytes: must be a number, not a string"},
      {"\"name\": 4", "3: tensor 0: name: must be a string, not a number"},
      {"\"bytes\": 4,\n\"forward_s\": 1", "2: tensor 0: backward_s: is missing"},
  };
  for (const auto& [members, sentence] : kTensors) {
    const std::string file = "{\"tensors\": [\n{\n" + std::string(members) + "}]}";
    EXPECT_EQ(refusal_of(parse_workload(file, "w.json")), std::string("w.json:") + sentence);
  }
  constexpr std::pair<const char*, const char*> kFiles[] = {
      {"{\"tensors\": []}", "w.json:1: tensors: must be a list of at least one"},
      {"{\"tensors\": [4]}", "w.json:1: tensor 0: must be an object, not a number"},
      {"{\"layers\": []}", "w.json:1: layers: unknown field; known is tensors"},
      {"[]", "w.json:1: must be an object with the field tensors, not a list"},
  };
  for (const auto& [file, sentence] : kFiles) EXPECT_EQ(refusal_of(parse_workload(file, "w.json")), sentence);
  EXPECT_FALSE(parse_workload("{", "w.json").ok());
}

}  // namespace
}  // namespace train_test
}  // namespace trestle
