// The trestle command: start ranks, and show what the library would do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/value_text.h"
#include "cli/calibrate.h"
#include "cli/info.h"
#include "cli/run.h"
#include "cli/sim_command.h"
#include "trestle/trestle.h"

namespace {

constexpr int kUsage = 2;  // exit code of a bad command line or variable

int say(const trestle::Result<std::string>& text) {
  if (!text.ok()) {
    std::fprintf(stderr, "trestle: %s\n", text.error().message.c_str());
    return kUsage;
  }
  std::fputs(text.value().c_str(), stdout);
  return 0;
}

struct Arguments {
  trestle::RunOptions run;
  std::string grace = "5s";
  trestle::TopologyOptions topology;
  bool json = false;
  bool markdown = false;
  std::string collective;
  std::string bytes;
  std::string type = "float";
  std::string out;
};

int run(Arguments& arguments) {
  if (arguments.run.command.empty())
    return say(trestle::Error{trestle::Code::kInvalidArgument, "run: which program? trestle run -n 8 -- program"});
  const auto grace = trestle::parse_duration_ns(arguments.grace);
  if (!grace.ok()) return say(grace.error());
  arguments.run.grace_ns = grace.value();
  const auto code = trestle::run_ranks(arguments.run, trestle::process_environment());
  if (!code.ok()) return say(code.error());
  return code.value();
}

// For the subcommands that need the variables: a value that cannot be read is said, not ignored.
template <class Describe>
int with_config(Describe describe) {
  const auto& config = trestle::process_config_result();
  if (!config.ok()) return say(config.error());
  return say(describe(config.value()));
}

void add_topology(CLI::App* command, Arguments& arguments) {
  auto* dims = command->add_option("--dims", arguments.topology.dims, "Sizes of the dimensions, innermost first: 4x2");
  command->add_option("--topo,--file", arguments.topology.file, "JSON topology file")->excludes(dims);
  command->add_option("-n,--ranks", arguments.topology.ranks, "Number of ranks; without dimensions they are all in one")
      ->check(CLI::Range(1, 1 << 20));
}

// Of `trestle run [options] [--] program arguments`: everything from the program on, which is not CLI11's to look at.
// Returns how many arguments are.
int take_command(int argc, char** argv, std::vector<std::string>& command) {
  if (argc < 2 || std::string(argv[1]) != "run") return argc;
  int at = 2;
  while (at < argc && argv[at][0] == '-' && std::string(argv[at]) != "--") {
    const std::string option = argv[at];
    at += option == "-n" || option == "--ranks" || option == "--grace" ? 2 : 1;
  }
  const int own = std::min(at, argc);
  if (at < argc && std::string(argv[at]) == "--") ++at;
  for (; at < argc; ++at) command.emplace_back(argv[at]);
  return own;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trestle: collective communication between ranks, over every link that they have", "trestle");
  app.require_subcommand(1);
  Arguments arguments;

  CLI::App* run_command =
      app.add_subcommand("run", "Start ranks on this machine: trestle run -n 8 -- program arguments");
  run_command->add_option("-n,--ranks", arguments.run.ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, 65536));
  run_command->add_option("--grace", arguments.grace, "Time between SIGTERM and SIGKILL after a failure (5s)");
  run_command->footer("PROGRAM [ARGUMENTS]: what each rank runs");

  CLI::App* env = app.add_subcommand("env", "Print the environment variables with their values");
  env->add_flag("--markdown", arguments.markdown, "Print docs/environment.md instead");

  CLI::App* topo = app.add_subcommand("topo", "Print the dimensions");
  add_topology(topo, arguments);
  topo->add_flag("--json", arguments.json, "As a topology file");

  CLI::App* plan = app.add_subcommand("plan", "Explain which schedule is chosen, out of what, and why");
  plan->add_option("collective", arguments.collective, "allreduce, allgather, ...")->required();
  plan->add_option("bytes", arguments.bytes, "Size of the buffer: 64M")->required();
  plan->add_option("--type", arguments.type, "Element type (float)");
  add_topology(plan, arguments);

  const trestle::SimCommand sim(app);

  CLI::App* calibrate = app.add_subcommand(
      "calibrate", "Measure the links between the ranks of a job: trestle run -n 8 -- trestle calibrate");
  calibrate->add_option("--out", arguments.out, "Topology file to write");

  CLI::App* version = app.add_subcommand("version", "Print the version");

  try {
    app.parse(take_command(argc, argv, arguments.run.command), argv);
  } catch (const CLI::ParseError& error) {  // CLI11's only way to report; CallForHelp is one too
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (run_command->parsed()) return run(arguments);
  if (version->parsed()) {
    std::printf("%d.%d.%d\n", TRESTLE_MAJOR, TRESTLE_MINOR, TRESTLE_PATCH);
    return 0;
  }
  if (sim.parsed()) return with_config([&](const auto& config) { return sim.run(config); });
  if (env->parsed() && arguments.markdown) return say(trestle::config_markdown());
  if (env->parsed()) return with_config([](const auto& config) { return trestle::config_text(config); });
  if (calibrate->parsed())
    return with_config([&](const auto& config) { return trestle::calibrate(config, arguments.out); });
  if (topo->parsed())
    return with_config(
        [&](const auto& config) { return describe_topology(arguments.topology, config, arguments.json); });
  return with_config([&](const auto& config) {
    return describe_plan(arguments.topology, config, arguments.collective, arguments.bytes, arguments.type);
  });
}
