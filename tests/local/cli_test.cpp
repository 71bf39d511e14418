// The trestle command as its users see it: exit codes and output. `trestle run` has tests of its own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "local/command.h"
#include "local/temporary_folder.h"

namespace {

using Words = std::vector<std::string>;
struct Call {
  Words words;
  std::string part;  // of the output
};

void expect_success(const std::vector<Call>& calls) {
  for (const auto& [words, part] : calls) {
    Command command(words);
    EXPECT_EQ(command.finish(), 0) << command.output();
    EXPECT_NE(command.output().find(part), std::string::npos) << part << " in\n" << command.output();
  }
}

// Exit code 2, and one sentence.
void expect_refusals(const std::vector<Call>& calls, const Command::Preparation& prepare = {}) {
  for (const auto& [words, part] : calls) {
    Command command(words, prepare);
    EXPECT_EQ(command.finish(), 2) << part;
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
    EXPECT_NE(command.output().find(part), std::string::npos) << part << " in\n" << command.output();
  }
}

TEST(InfoTest, VersionHelpAndVariables) {
  expect_success({{{"version"}, "0.1.0\n"},
                  {{"--version"}, "0.1.0\n"},
                  {{"help"}, "plan"},
                  {{"help", "plan"}, "--dims"},
                  {{"help", "sim", "paper"}, "--reducing-switches"},
                  {{"help", "run"}, "SIGKILL"},
                  {{"env"}, "TRESTLE_TIMEOUT"},
                  {{"env", "--json"}, "[{\"name\":\"TRESTLE_CONF_FILE\""},
                  {{"env", "--markdown"}, "# Environment variables"}});
  expect_refusals({{{"plna"}, "'plna' is not a subcommand; did you mean plan?"},
                   {{"help", "simm"}, "'simm' is not a subcommand; did you mean sim?"},
                   {{"sim", "papr"}, "'papr' is not a subcommand; did you mean paper?"},
                   {{"env", "TRESTLE_RIALS"}, "did you mean TRESTLE_RAILS?"}});
  Command word({"env", "rail"});
  EXPECT_EQ(word.finish(), 0);
  EXPECT_NE(word.output().find("TRESTLE_RAIL_TIMEOUT"), std::string::npos);
  EXPECT_EQ(word.output().find("TRESTLE_SPIN"), std::string::npos);
}

TEST(InfoTest, VariablesThatDiffer) {
  Command changed({"env", "--changed", "--json"}, [] {
    setenv("TRESTLE_CHUNKS", "7", 1);
    setenv("TRESTLE_EAGER", "16384", 1);  // the default in other words
    setenv("TRESTLE_STAGING", "1.5M", 1);
    setenv("TRESTLE_ALGO", "all_reduce:ring", 1);
  });
  EXPECT_EQ(changed.finish(), 0) << changed.output();
  EXPECT_EQ(changed.count("\"name\""), changed.count("\"source\":\"environment\"")) << changed.output();
  for (const char* value :
       {"\"value\":\"7\",\"default\":\"0\"", "\"value\":\"1536K\"", "\"value\":\"all_reduce:ring\""})
    EXPECT_EQ(changed.count(value), 1) << value << " in " << changed.output();
  EXPECT_EQ(changed.count("TRESTLE_EAGER\""), 0) << changed.output();
  expect_refusals({{{"env"}, "TRESTLE_ALGO: 'rign' is not an algorithm; did you mean ring?"}},
                  [] { setenv("TRESTLE_ALGO", "rign", 1); });
  expect_refusals({{{"env"}, "TRESTLE_SCHED=thamis: must be one of baseline,themis,auto (did you mean themis?)"}},
                  [] { setenv("TRESTLE_SCHED", "thamis", 1); });
  expect_refusals({{{"env"}, "TRESTLE_HOST_PATH=atuo: must be one of off,auto,on (did you mean auto?)"}},
                  [] { setenv("TRESTLE_HOST_PATH", "atuo", 1); });
}

TEST(InfoTest, Plans) {
  Command plan({"plan", "allreduce", "1.5M", "--dims", "4x2"});
  EXPECT_EQ(plan.finish(), 0) << plan.output();
  for (const char* part : {"predicted time: ", "candidates", "themis+fifo", "busy"})
    EXPECT_NE(plan.output().find(part), std::string::npos) << part;
  expect_success({{{"plan", "all_reduce", "1536K", "--dims", "4x2"}, plan.output()}});
  expect_refusals({{{"plan", "allreduce", "64M"}, "no dimensions"},
                   {{"plan", "allreduce", "64M", "--dims", "4y2"}, "'4y2'"},
                   {{"plan", "allreduce", "17", "-n", "4"}, "17 bytes are not a whole number"},
                   {{"plan", "all_redcue", "64M", "-n", "4"}, "did you mean allreduce?"},
                   {{"plan", "allreduce", "64M", "-n", "4", "--type", "flaot"}, "did you mean float?"},
                   {{"plan", "allreduce", "64M", "--dims", "4x2", "-n", "7"}, "7"}});
}

// A topology file that exists as long as this object.
class TopologyFile {
 public:
  explicit TopologyFile(const std::string& text) : path_(folder_.write("file", text)) {}
  std::string path() const { return path_; }
  std::string text() const { return folder_.content("file"); }

 private:
  const TemporaryFolder folder_;
  const std::string path_;
};

constexpr const char* kGrid =
    R"({"dimensions": [{"size": 4, "bandwidth_gbps": 200, "latency_ns": 700},
                       {"size": 4, "bandwidth_gbps": 100, "latency_ns": 1700}]})";
constexpr const char* kRails =
    R"({"dimensions": [{"size": 4, "transport": "tcp", "latency_ns": 20000,
                        "rails": [{"interface": "eth1", "bandwidth_gbps": 1},
                                  {"interface": "eth2", "bandwidth_gbps": 0.5}]}]})";

TEST(TopoTest, DrawsThisHostAndItsDimensions) {
  Command host({"topo"});
  EXPECT_EQ(host.finish(), 0) << host.output();
  for (const char* part : {"host ", "\nread from ", "+- package ", "  lo "})
    EXPECT_NE(host.output().find(part), std::string::npos) << part << " in\n" << host.output();
  EXPECT_EQ(host.output().find("dimension"), std::string::npos) << "none are known";
  const TopologyFile topology(kGrid), picture("");
  Command with_file({"topo", "--topo", topology.path(), "--plot", picture.path()});
  EXPECT_EQ(with_file.finish(), 0) << with_file.output();
  EXPECT_NE(with_file.output().find("\n16 ranks; why: topology file "), std::string::npos) << with_file.output();
  EXPECT_TRUE(picture.text().starts_with("<svg "));
  Command json({"topo", "--dims", "4x2", "--json"});
  EXPECT_EQ(json.finish(), 0) << json.output();
  EXPECT_TRUE(json.output().starts_with("{\"host\":{\"name\":")) << json.output();
  EXPECT_NE(json.output().find("\n\"dimensions\":["), std::string::npos) << json.output();
  const TopologyFile written(json.output());
  Command again({"topo", "--topo", written.path()});
  EXPECT_EQ(again.finish(), 0) << again.output();
  EXPECT_NE(again.output().find("\n8 ranks; why: topology file "), std::string::npos) << "it is a topology file too";
}

TEST(TopoTest, VariablesGiveTheDimensions) {
  const TopologyFile topology(kGrid);
  Command file({"topo"}, [path = topology.path()] { setenv("TRESTLE_TOPO_FILE", path.c_str(), 1); });
  EXPECT_EQ(file.finish(), 0) << file.output();
  EXPECT_NE(file.output().find("\n16 ranks; "), std::string::npos) << file.output();
  Command rails({"topo"}, [] { setenv("TRESTLE_RAILS", "lo@10g", 1); });
  EXPECT_EQ(rails.finish(), 0) << rails.output();
  EXPECT_NE(rails.output().find("10 Gb/s"), std::string::npos) << rails.output();
  EXPECT_NE(rails.output().find("rail, 127.0.0.0/8"), std::string::npos) << rails.output();
}

TEST(TopoTest, SaysInOneSentenceWhatIsWrong) {
  expect_refusals({{{"topo", "--topo", "/nowhere.json"}, "topology file /nowhere.json: cannot be opened"},
                   {{"topo", "--dims", "4y2"}, "'4y2'"},
                   {{"topo", "--svg", "/nowhere/picture.svg"}, "/nowhere/picture.svg: cannot be written"}});
  Command unknown({"topo", "--colour"});
  EXPECT_EQ(unknown.finish(), 2);
  EXPECT_NE(unknown.output().find("--colour"), std::string::npos) << unknown.output();
  expect_refusals({{{"topo"}, "TRESTLE_RAILS names 'eth77', which is no interface of this host; there are: "}},
                  [] { setenv("TRESTLE_RAILS", "eth77", 1); });
}

TEST(SimTest, SimulatesAndWritesFiles) {
  const TopologyFile topology(kGrid);
  Command text({"sim", "--topo", topology.path(), "--bytes", "8M", "--chunks", "8", "--sched", "themis"});
  EXPECT_EQ(text.finish(), 0) << text.output();
  EXPECT_NE(text.output().find("utilisation"), std::string::npos);
  const TopologyFile plot(""), trace("");
  Command json({"sim", "--topo", topology.path(), "--json", "--bytes", "8M", "--chunks", "8", "--collective",
                "reduce_scatter", "--model", "paper", "--plot", plot.path(), "--trace", trace.path()});
  EXPECT_EQ(json.finish(), 0) << json.output();
  EXPECT_TRUE(json.output().starts_with("{\"time_ns\":")) << json.output();
  EXPECT_EQ(json.lines().size(), 1u);
  EXPECT_TRUE(plot.text().starts_with("<svg "));
  EXPECT_TRUE(trace.text().starts_with("{\"displayTimeUnit\""));
}

TEST(SimTest, SimulatesRails) {
  const TopologyFile topology(kRails);
  Command text({"sim", "--topo", topology.path(), "--model", "engine", "--bytes", "8M", "--chunks", "2", "--seed", "3",
                "--rail", "eth1:jitter=5us,rate@0.001=0.5", "--rail", "eth2:down@0.001,up@0.5"});
  EXPECT_EQ(text.finish(), 0) << text.output();
  EXPECT_NE(text.output().find("dimension 1, eth2, 0.5 Gb/s"), std::string::npos) << text.output();
  Command sum({"sim", "--topo", topology.path(), "--bytes", "8M"});
  EXPECT_EQ(sum.finish(), 0) << sum.output();
  EXPECT_NE(sum.output().find("note: the rails of a dimension count as one link"), std::string::npos) << sum.output();
}

TEST(SimTest, SaysInOneSentenceWhatIsWrongWithRails) {
  const TopologyFile topology(kRails);
  const TopologyFile grid(kGrid);
  const auto sim = [](const TopologyFile& file, const char* model, const char* option, const char* value) {
    return Words{"sim", "--topo", file.path(), "--bytes", "1M", "--chunks", "1", "--model", model, option, value};
  };
  expect_refusals({
      {sim(topology, "steps", "--rail", "eth1:down@1"), "only --model engine simulates rails"},
      {sim(topology, "steps", "--seed", "1"), "only --model engine simulates rails"},
      {sim(topology, "engine", "--seed", "x"), "--seed: 'x' is no whole number"},
      {sim(topology, "engine", "--rail", "eth1:rate@1=0"), "'0' is no part of a rail's rate"},
      {sim(topology, "engine", "--rail", "eth7:down@1"), "'eth7' is not a rail of this topology; did you mean eth1?"},
      {sim(grid, "engine", "--rail", "eth1:down@1"), "its dimensions name no rails"},
      {sim(topology, "engine", "--rail", "eth1"), "must have the name of a rail and what happens to it"},
  });
}

TEST(TrainTest, ChoosesStudiesAndSaysWhereTheStudyWent) {
  Command choose({"train", "choose", "--bytes", "46758048", "--ratio", "0.1", "--workers", "8", "--alpha", "0.001",
                  "--beta", "8e-10", "--json"});
  EXPECT_EQ(choose.finish(), 0) << choose.output();
  EXPECT_NE(choose.output().find("\"chosen\":\"ring\""), std::string::npos) << choose.output();
  const TopologyFile topology(kGrid);
  Command study({"train", "study", "--topo", topology.path(), "--workload", "ResNet-152", "--chunks", "4"});
  EXPECT_EQ(study.finish(), 0) << study.output();
  EXPECT_NE(study.output().find("ResNet-152"), std::string::npos) << study.output();
  expect_refusals({
      {{"sim", "train", "--workload", "GNMT"}, "sim train is now trestle train study, with the same options"},
      {{"train", "--json", "choose"}, "--json must follow the subcommand: trestle train choose"},
      {{"train", "choose"}, "--bytes: is needed to choose a collective"},
      {{"train", "--preset", "none"}, "--preset: 'none' is not a preset; there are mgwfbp_fig10"},
      {{"train", "--workload", "resnet50", "--topo", "/nonexistent/t.json"}, "--topo: "},
  });
}

TEST(SimTest, SaysInOneSentenceWhatIsWrong) {
  const TopologyFile topology(kGrid);
  const TopologyFile misspelt("{\"dimensions\": [{\"size\": 4,\n \"bandwith_gbps\": 200}]}");
  const TopologyFile large(R"({"dimensions": [{"size": 1024, "bandwidth_gbps": 200, "latency_ns": 700},
                                              {"size": 1024, "bandwidth_gbps": 100, "latency_ns": 1700}]})");
  const auto with = [&topology](const char* option, const char* value) {
    return Words{"sim", "--topo", topology.path(), option, value};
  };
  expect_refusals({
      {with("--collective", "all"), "'all' is not a collective"},
      {with("--collective", "barrier"), "--collective: barrier"},
      {with("--sched", "best"), "--sched: 'best'"},
      {with("--intra", "lifo"), "--intra: 'lifo'"},
      {with("--model", "engin"), "--model: 'engin' is not a model; did you mean engine?"},
      {with("--bytes", "many"), "--bytes: 'many'"},
      {with("--chunks", "0"), "--chunks: 0"},
      {with("--plot", "/nowhere/plot.svg"), "/nowhere/plot.svg: cannot be written"},
      {with("--trace", "/dev/full"), "/dev/full: cannot be written"},
      {{"sim", "--topo", misspelt.path()}, misspelt.path() + ":2: "},
      {{"sim", "--topo", "/nowhere.json"}, "/nowhere.json"},
      {{"sim", "--topo", large.path(), "--model", "engine"}, "1048576 are too many; at most 2048 ranks"},
      {{"sim"}, "no topology"},
  });
}

TEST(TrainTest, PredictsAStepAndSaysInOneSentenceWhatIsWrong) {
  Command text({"train", "--workload", "resnet50", "--network", "26e-6,0.8e-9,0,64,ring"});
  EXPECT_EQ(text.finish(), 0) << text.output();
  EXPECT_NE(text.output().find("split_optimal:free"), std::string::npos) << text.output();
  const TopologyFile tensors(R"({"tensors": [{"bytes": 4, "forward_s": 1, "backward_s": 2}]})");
  Command json({"train", "--workload", tensors.path(), "--cost", "1,0.5", "--policy", "optimal,auto", "--json"});
  EXPECT_EQ(json.finish(), 0) << json.output();
  EXPECT_TRUE(json.output().starts_with("{\"workload\":")) << json.output();
  EXPECT_EQ(json.lines().size(), 1u);
  expect_refusals({{{"train"}, "--workload: name a network or a file"},
                   {{"train", "--workload", "resnet50"}, "what messages cost"},
                   {{"train", "--workload", "/nowhere.json", "--cost", "1,1"}, "/nowhere.json"},
                   {{"train", "--workload", "resnet50", "--cost", "1"}, "--cost: "}});
}

}  // namespace
