// The trestle command as its users see it: exit codes, signals, output. The ranks are this program itself; its first
// argument selects their task.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "local/command.h"

namespace {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// ---- The tasks of a rank

int print_variables() {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TRESTLE_SECRET"})
    std::printf("%s=%s\n", name, variable(name).c_str());
  std::fprintf(stderr, "to standard error\n");
  std::printf("no end of line");
  return 0;
}

// Prints lines in pieces, so that a launcher which passes on pieces would mix them.
int print_pieces() {
  const std::string piece(100, static_cast<char>('a' + std::stoi(variable("RANK"))));
  for (int line = 0; line < 200; ++line) {
    for (int i = 0; i < 5; ++i) {
      if (write(STDOUT_FILENO, piece.data(), piece.size()) < 0) return 1;
    }
    if (write(STDOUT_FILENO, "\n", 1) < 0) return 1;
  }
  return 0;
}

int wait_for_signal() {
  std::printf("pid %d waits\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  while (true) pause();
}

// The ranks tell rank 0 over the inherited pipe `from` -> `to` that they ignore signals. Then rank 0 fails.
int stubborn(int from, int to) {
  if (variable("RANK") == "0") {
    char bytes[2];
    for (ssize_t heard = 0; heard < 2;) heard += read(from, bytes, 1);
    return 9;
  }
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  if (write(to, "d", 1) != 1) return 1;
  return wait_for_signal();
}

int rank_main(const std::string& part, int argc, char** argv) {
  if (part == "variables") return print_variables();
  if (part == "pieces") return print_pieces();
  if (part == "wait") return wait_for_signal();
  if (part == "code") return variable("RANK") == "1" ? 7 : wait_for_signal();
  if (part == "crash") return variable("RANK") == "2" ? raise(SIGKILL) : wait_for_signal();
  if (part == "stubborn") return stubborn(std::stoi(argv[2]), std::stoi(argv[3]));
  if (part == "arguments") {
    for (int i = 2; i < argc; ++i) std::printf("<%s>\n", argv[i]);
    return 0;
  }
  return 99;
}

// ---- The tests

std::vector<std::string> run(int ranks, const std::string& part, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks), "--grace", "200ms", "--", "/proc/self/exe"};
  arguments.back() = std::string(testing::internal::GetArgvs()[0]);
  arguments.push_back("--rank-part=" + part);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(RunTest, RanksGetTheLaunchersVariables) {
  unsetenv("TRESTLE_SECRET");
  Command command(run(3, "variables"));
  EXPECT_EQ(command.finish(), 0) << command.output();
  std::multiset<std::string> lines;
  std::set<std::string> secrets;
  for (const std::string& line : command.lines()) {
    lines.insert(line);
    if (line.find("TRESTLE_SECRET=") != std::string::npos) secrets.insert(line.substr(4));
  }
  for (const std::string rank : {"0", "1", "2"}) {
    for (const std::string& expected :
         {"RANK=" + rank, std::string("WORLD_SIZE=3"), "LOCAL_RANK=" + rank, std::string("LOCAL_WORLD_SIZE=3"),
          std::string("MASTER_ADDR=127.0.0.1"), std::string("to standard error"), std::string("no end of line")})
      EXPECT_EQ(lines.count("[" + rank + "] " + expected), 1u) << expected << " in\n" << command.output();
  }
  ASSERT_EQ(secrets.size(), 1u);
  EXPECT_EQ(secrets.begin()->size(), std::strlen("TRESTLE_SECRET=") + 64);
}

TEST(RunTest, ASecretThatIsSetIsKept) {
  setenv("TRESTLE_SECRET", "mine", 1);
  Command command(run(1, "variables"));
  unsetenv("TRESTLE_SECRET");
  EXPECT_EQ(command.finish(), 0);
  EXPECT_NE(command.output().find("[0] TRESTLE_SECRET=mine\n"), std::string::npos);
}

TEST(RunTest, LinesAreNeverTorn) {
  Command command(run(4, "pieces"));
  EXPECT_EQ(command.finish(), 0);
  std::map<std::string, int> lines;
  for (const std::string& line : command.lines()) ++lines[line];
  ASSERT_EQ(lines.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string line = "[" + std::to_string(rank) + "] " + std::string(500, static_cast<char>('a' + rank));
    EXPECT_EQ(lines[line], 200);
  }
}

TEST(RunTest, TheFirstFailuresCodeIsReturnedAndTheOthersEnd) {
  Command code(run(3, "code"));
  EXPECT_EQ(code.finish(), 7);
  Command crash(run(3, "crash"));
  EXPECT_EQ(crash.finish(), 128 + SIGKILL);
}

TEST(RunTest, WhoIgnoresSigtermIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Command command(run(3, "stubborn", {std::to_string(ends[0]), std::to_string(ends[1])}));
  EXPECT_EQ(command.finish(), 9);
  close(ends[0]);
  close(ends[1]);
}

TEST(RunTest, SignalsAreForwarded) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    Command command(run(2, "wait"));
    command.wait_for("waits", 2);
    command.signal(number);
    EXPECT_EQ(command.finish(), 128 + number);
  }
}

// The pipe ends only when every rank that holds it has ended.
TEST(RunTest, RanksDieWithTheCommand) {
  Command command(run(2, "wait"));
  command.wait_for("waits", 2);
  std::vector<pid_t> pids;
  for (const std::string& line : command.lines()) pids.push_back(std::stoi(line.substr(line.find("pid ") + 4)));
  ASSERT_EQ(pids.size(), 2u);
  // Adopts orphans, so that this process can wait for their end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  command.signal(SIGKILL);
  EXPECT_EQ(command.finish(), -SIGKILL);
  for (pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

TEST(RunTest, ArgumentsArePassedAsTheyAre) {
  Command command(run(1, "arguments", {"-n", "5", "--json", "--", "two words"}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.output(), "[0] <-n>\n[0] <5>\n[0] <--json>\n[0] <-->\n[0] <two words>\n");
}

TEST(RunTest, BadCallsAreSaid) {
  Command missing({"run", "-n", "2", "--", "/no/such/program"});
  EXPECT_EQ(missing.finish(), 127);
  EXPECT_EQ(missing.output(), "trestle: /no/such/program cannot be started: No such file or directory\n");
  Command nothing({"run", "-n", "2"});
  EXPECT_EQ(nothing.finish(), 2);
  Command negative({"run", "-n", "0", "true"});
  EXPECT_EQ(negative.finish(), 2);
}

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

int main(int argc, char** argv) {
  constexpr const char* kPart = "--rank-part=";
  if (argc > 1 && std::strncmp(argv[1], kPart, std::strlen(kPart)) == 0)
    return rank_main(argv[1] + std::strlen(kPart), argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
