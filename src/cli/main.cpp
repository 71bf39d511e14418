// The trestle command: starts ranks and shows what the library would do.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/config/value_text.h"
#include "cli/calibrate/calibrate.h"
#include "cli/plan/info.h"
#include "cli/plan/topology_options.h"
#include "cli/run/run_command.h"
#include "cli/sim/sim_command.h"
#include "cli/topo/topo_command.h"
#include "cli/train/train_command.h"
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
  trestle::TopologyOptions topology;
  bool markdown = false;
  std::string collective;
  std::string bytes;
  std::string type = "float";
  std::string out;
};

int run(const trestle::RunCommand& command) {
  const auto status = command.run(trestle::process_environment());
  return status.ok() ? status.value() : say(status.error());
}

// For subcommands that need the variables: reports a value that cannot be read instead of ignoring it.
template <class Describe>
int with_config(Describe describe) {
  const auto& config = trestle::process_config_result();
  if (!config.ok()) return say(config.error());
  return say(describe(config.value()));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trestle: collective communication between ranks, over all their links", "trestle");
  app.require_subcommand(1);
  Arguments arguments;

  trestle::RunCommand run_command(app);

  CLI::App* env = app.add_subcommand("env", "Print the environment variables with their values");
  env->add_flag("--markdown", arguments.markdown, "Print docs/environment.md instead");

  const trestle::TopoCommand topo(app);

  CLI::App* plan = app.add_subcommand("plan", "Explain which schedule is chosen, from which candidates, and why");
  plan->add_option("collective", arguments.collective, "allreduce, allgather, ...")->required();
  plan->add_option("bytes", arguments.bytes,
                   "Size of the buffer: 64M; or, for all-gather-v and reduce-scatter-v, one per rank: 1M,4K,4K,0")
      ->required();
  plan->add_option("--type", arguments.type, "Element type (float)");
  trestle::add_topology_options(*plan, arguments.topology);

  const trestle::SimCommand sim(app);
  const trestle::TrainCommand train(app);

  CLI::App* calibrate = app.add_subcommand(
      "calibrate", "Measure the links between the ranks of a job: trestle run -n 8 -- trestle calibrate");
  calibrate->add_option("--out", arguments.out, "Topology file to write");

  CLI::App* version = app.add_subcommand("version", "Print the version");

  try {
    app.parse(run_command.own_arguments(argc, argv));
    run_command.parse_more_programs();
    // CLI11 reports only by exceptions. CallForHelp is one too.
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (run_command.parsed()) return run(run_command);
  if (version->parsed()) {
    std::printf("%d.%d.%d\n", TRESTLE_MAJOR, TRESTLE_MINOR, TRESTLE_PATCH);
    return 0;
  }
  if (sim.parsed()) return with_config([&](const auto& config) { return sim.run(config); });
  if (train.parsed()) return with_config([&](const auto& config) { return train.run(config); });
  if (env->parsed() && arguments.markdown) return say(trestle::config_markdown());
  if (env->parsed()) return with_config([](const auto& config) { return trestle::config_text(config); });
  if (calibrate->parsed())
    return with_config([&](const auto& config) { return trestle::calibrate(config, arguments.out); });
  if (topo.parsed()) return with_config([&](const auto& config) { return topo.run(config); });
  return with_config([&](const auto& config) {
    return describe_plan(arguments.topology, config, arguments.collective, arguments.bytes, arguments.type);
  });
}
