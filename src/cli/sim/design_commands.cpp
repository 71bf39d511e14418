#include "cli/sim/design_commands.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "cli/option_values.h"
#include "cli/sim/advice_text.h"
#include "study/paper.h"
#include "study/paper_systems.h"

namespace trestle {

namespace {

// As on the command line; "" if not given.
struct AdviseOptions {
  std::string topology_file;
  std::string bytes = "256M";
  std::string chunks = "64";
  bool json = false;
};

Result<std::string> run_advise(const AdviseOptions& options) {
  AdviceRequest request;
  request.bytes = TRY(bytes_value("--bytes", options.bytes));
  request.chunks = TRY(count_value("--chunks", options.chunks, 1, kMostChunks));
  std::vector<NamedAdvice> all;
  std::vector<NamedTopology> systems = TRY(systems_in(options.topology_file));
  if (systems.empty()) systems = named_paper_systems();
  for (const NamedTopology& system : systems) {
    request.topology = system.topology;
    const Result<Advice> advice = advise(request);
    if (!advice.ok()) return invalid_argument(system.name + ": " + advice.error().message);
    all.push_back({system.name, advice.value()});
  }
  return options.json ? advice_json(all) : advice_text(all);
}

}  // namespace

std::vector<Command> add_design_commands(CLI::App& sim) {
  const auto o = std::make_shared<AdviseOptions>();
  CLI::App* advise =
      sim.add_subcommand("advise", "Show whether the dimensions' bandwidths fit, and where more would help");
  advise->add_option("--topo", o->topology_file, "JSON topology file (the paper's six systems)");
  advise->add_option("--chunks", o->chunks, "Number of chunks (64)");
  advise->add_flag("--json", o->json, "Print one JSON object");
  advise->add_option("--bytes", o->bytes, "Bytes per rank of the all-reduce (256M)");
  CLI::App* train = sim.add_subcommand("train", "Moved: trestle train study");
  train->allow_extras();
  const auto moved = [](const Config&) -> Result<std::string> {
    return invalid_argument("sim train is now trestle train study, with the same options");
  };
  return {{advise, [o](const Config&) { return run_advise(*o); }}, {train, moved}};
}

}  // namespace trestle
