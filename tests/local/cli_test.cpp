// The trestle command as its users see it: exit codes and output. `trestle run` has tests of its own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "local/command.h"

namespace {

TEST(InfoTest, VersionAndVariables) {
  Command version({"version"});
  EXPECT_EQ(version.finish(), 0);
  EXPECT_EQ(version.output(), "0.1.0\n");
  Command env({"env"});
  EXPECT_EQ(env.finish(), 0);
  EXPECT_NE(env.output().find("TRESTLE_TIMEOUT"), std::string::npos);
  Command markdown({"env", "--markdown"});
  EXPECT_EQ(markdown.finish(), 0);
  EXPECT_TRUE(markdown.output().starts_with("# Environment variables"));
}

TEST(InfoTest, Plans) {
  Command plan({"plan", "allreduce", "64M", "--dims", "4x2"});
  EXPECT_EQ(plan.finish(), 0) << plan.output();
  for (const char* part : {"predicted time: ", "candidates", "themis+fifo", "busy"})
    EXPECT_NE(plan.output().find(part), std::string::npos) << part;
  Command none({"plan", "allreduce", "64M"});
  EXPECT_EQ(none.finish(), 2);
  Command wrong({"plan", "allreduce", "64M", "--dims", "4y2"});
  EXPECT_EQ(wrong.finish(), 2);
  Command part({"plan", "allreduce", "17", "-n", "4"});
  EXPECT_EQ(part.finish(), 2) << part.output();
  Command other({"plan", "allreduce", "64M", "--dims", "4x2", "-n", "7"});
  EXPECT_EQ(other.finish(), 2) << other.output();
}

// A topology file that exists as long as this object.
class TopologyFile {
 public:
  explicit TopologyFile(const std::string& text) {
    const int file = mkstemp(path_);
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
  }
  ~TopologyFile() { unlink(path_); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/trestle_cli_XXXXXX";
};

constexpr const char* kGrid =
    R"({"dimensions": [{"size": 4, "bandwidth_gbps": 200, "latency_ns": 700},
                       {"size": 4, "bandwidth_gbps": 100, "latency_ns": 1700}]})";
constexpr const char* kRails =
    R"({"dimensions": [{"size": 4, "transport": "tcp", "latency_ns": 20000,
                        "rails": [{"interface": "eth1", "bandwidth_gbps": 1},
                                  {"interface": "eth2", "bandwidth_gbps": 0.5}]}]})";

std::string start_of(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  EXPECT_NE(file, nullptr) << path;
  if (file == nullptr) return "";
  char head[64] = {};
  EXPECT_GT(std::fread(head, 1, sizeof head - 1, file), 0u);
  std::fclose(file);
  return head;
}

TEST(TopoTest, DrawsThisHostAndItsDimensions) {
  Command host({"topo"});
  EXPECT_EQ(host.finish(), 0) << host.output();
  for (const char* part : {"host ", "\nread from ", "+- package ", "  lo "})
    EXPECT_NE(host.output().find(part), std::string::npos) << part << " in\n" << host.output();
  EXPECT_EQ(host.output().find("dimension"), std::string::npos) << "none are known";
  const TopologyFile topology(kGrid), picture("");
  Command with_file({"topo", "--topo", topology.path(), "--svg", picture.path()});
  EXPECT_EQ(with_file.finish(), 0) << with_file.output();
  EXPECT_NE(with_file.output().find("\n16 ranks; why: topology file "), std::string::npos) << with_file.output();
  EXPECT_TRUE(start_of(picture.path()).starts_with("<svg "));
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
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--topo", "/nowhere.json"}, "topology file /nowhere.json: cannot be opened"},
      {{"--dims", "4y2"}, "'4y2'"},
      {{"--svg", "/nowhere/picture.svg"}, "/nowhere/picture.svg: cannot be written"},
  };
  for (const auto& [options, expected] : cases) {
    std::vector<std::string> arguments = {"topo"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Command command(arguments);
    EXPECT_EQ(command.finish(), 2) << expected;
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
    EXPECT_NE(command.output().find(expected), std::string::npos) << command.output();
  }
  Command unknown({"topo", "--colour"});
  EXPECT_EQ(unknown.finish(), 2);
  EXPECT_NE(unknown.output().find("--colour"), std::string::npos) << unknown.output();
  Command rails({"topo"}, [] { setenv("TRESTLE_RAILS", "eth77", 1); });
  EXPECT_EQ(rails.finish(), 2);
  EXPECT_NE(rails.output().find("TRESTLE_RAILS names 'eth77', which is no interface of this host; there are: "),
            std::string::npos)
      << rails.output();
}

TEST(SimTest, SimulatesAndWritesFiles) {
  const TopologyFile topology(kGrid);
  Command text({"sim", "--topo", topology.path(), "--bytes", "8M", "--chunks", "8", "--sched", "themis"});
  EXPECT_EQ(text.finish(), 0) << text.output();
  EXPECT_NE(text.output().find("utilisation"), std::string::npos);
  const TopologyFile plot(""), trace("");
  Command json({"sim", "--topo", topology.path(), "--json", "--bytes", "8M", "--chunks", "8", "--collective",
                "reducescatter", "--model", "paper", "--plot", plot.path(), "--trace", trace.path()});
  EXPECT_EQ(json.finish(), 0) << json.output();
  EXPECT_TRUE(json.output().starts_with("{\"time_ns\":")) << json.output();
  EXPECT_EQ(json.lines().size(), 1u);
  for (const auto& [path, start] : {std::pair(plot.path(), "<svg "), std::pair(trace.path(), "{\"displayTimeUnit\"")}) {
    std::FILE* file = std::fopen(path.c_str(), "r");
    ASSERT_NE(file, nullptr);
    char head[64] = {};
    EXPECT_GT(std::fread(head, 1, sizeof head - 1, file), 0u);
    std::fclose(file);
    EXPECT_TRUE(std::string(head).starts_with(start)) << head;
  }
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
  const std::string engine = "engine";
  const std::vector<std::vector<std::string>> cases = {
      {topology.path(), "steps", "--rail", "eth1:down@1", "only --model engine simulates rails"},
      {topology.path(), "steps", "--seed", "1", "only --model engine simulates rails"},
      {topology.path(), engine, "--seed", "x", "--seed: 'x' is no whole number"},
      {topology.path(), engine, "--rail", "eth1:rate@1=0", "'0' is no part of a rail's rate"},
      {topology.path(), engine, "--rail", "eth7:down@1", "'eth7' is no rail of this topology; there are eth1, eth2"},
      {grid.path(), engine, "--rail", "eth1:down@1", "its dimensions name no rails"},
      {topology.path(), engine, "--rail", "eth1", "must have the name of a rail and what happens to it"},
  };
  for (const std::vector<std::string>& row : cases) {
    Command command({"sim", "--topo", row[0], "--bytes", "1M", "--chunks", "1", "--model", row[1], row[2], row[3]});
    EXPECT_EQ(command.finish(), 2) << row[4];
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
    EXPECT_NE(command.output().find(row[4]), std::string::npos) << command.output();
  }
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
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"sim", "train", "--workload", "GNMT"}, "sim train is now trestle train study, with the same options"},
      {{"train", "--json", "choose"}, "--json must follow the subcommand: trestle train choose"},
      {{"train", "choose"}, "--bytes: is needed to choose a collective"},
      {{"train", "--preset", "none"}, "--preset: \"none\" is no preset; there are mgwfbp_fig10"},
      {{"train", "--workload", "resnet50", "--topo", "/nonexistent/t.json"}, "--topo: "},
  };
  for (const auto& [arguments, sentence] : wrong) {
    Command command(arguments);
    EXPECT_EQ(command.finish(), 2) << command.output();
    EXPECT_NE(command.output().find(sentence), std::string::npos) << command.output();
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
  }
}

TEST(SimTest, SaysInOneSentenceWhatIsWrong) {
  const TopologyFile topology(kGrid);
  const TopologyFile misspelt("{\"dimensions\": [{\"size\": 4,\n \"bandwith_gbps\": 200}]}");
  const TopologyFile large(R"({"dimensions": [{"size": 1024, "bandwidth_gbps": 200, "latency_ns": 700},
                                              {"size": 1024, "bandwidth_gbps": 100, "latency_ns": 1700}]})");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--topo", topology.path(), "--collective", "all"}, "'all' is not a collective"},
      {{"--topo", topology.path(), "--collective", "barrier"}, "--collective: barrier"},
      {{"--topo", topology.path(), "--sched", "best"}, "--sched: 'best'"},
      {{"--topo", topology.path(), "--intra", "lifo"}, "--intra: 'lifo'"},
      {{"--topo", topology.path(), "--model", "real"}, "--model: 'real'"},
      {{"--topo", topology.path(), "--bytes", "many"}, "--bytes: 'many'"},
      {{"--topo", topology.path(), "--chunks", "0"}, "--chunks: 0"},
      {{"--topo", topology.path(), "--plot", "/nowhere/plot.svg"}, "/nowhere/plot.svg: cannot be written"},
      {{"--topo", topology.path(), "--trace", "/dev/full"}, "/dev/full: cannot be written"},
      {{"--topo", misspelt.path()}, misspelt.path() + ":2: "},
      {{"--topo", "/nowhere.json"}, "/nowhere.json"},
      {{"--topo", large.path(), "--model", "engine"}, "1048576 are too many; at most 2048 ranks"},
      {{}, "no topology"},
  };
  for (const auto& [options, expected] : cases) {
    std::vector<std::string> arguments = {"sim"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Command command(arguments);
    EXPECT_EQ(command.finish(), 2) << expected;
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
    EXPECT_NE(command.output().find(expected), std::string::npos) << command.output();
  }
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
  const std::vector<std::vector<std::string>> wrong = {{"train"},
                                                       {"train", "--workload", "resnet50"},
                                                       {"train", "--workload", "/nowhere.json", "--cost", "1,1"},
                                                       {"train", "--workload", "resnet50", "--cost", "1"}};
  for (const std::vector<std::string>& arguments : wrong) {
    Command command(arguments);
    EXPECT_EQ(command.finish(), 2) << command.output();
    EXPECT_EQ(command.lines().size(), 1u) << command.output();
  }
}

}  // namespace
