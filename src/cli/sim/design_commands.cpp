#include "cli/sim/design_commands.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "base/text/value_text.h"
#include "cli/sim/advice_text.h"
#include "study/paper_systems.h"
#include "study/training.h"

namespace trestle {

namespace {

// As on the command line; "" if not given.
struct AdviseOptions {
  std::string topology_file;
  std::string bytes = "256M";
  std::string chunks = "64";
  bool json = false;
};

Result<uint32_t> count_of(const std::string& option, const std::string& text, int64_t most) {
  const Result<int64_t> count = parse_integer(text);
  if (!count.ok()) return invalid_argument(option + ": " + count.error().message);
  if (count.value() < 1 || count.value() > most) {
    return invalid_argument(option + ": " + text + " is not from 1 to " + std::to_string(most));
  }
  return static_cast<uint32_t>(count.value());
}

Result<std::vector<NamedTopology>> systems_of(const AdviseOptions& options) {
  std::vector<NamedTopology> systems;
  if (!options.topology_file.empty()) {
    Topology topology = TRY(read_topology_file(options.topology_file));
    systems.push_back({options.topology_file, std::move(topology)});
    return systems;
  }
  for (const PaperSystem& system : paper_systems()) {
    systems.push_back({std::string(system.name), to_topology(system)});
  }
  return systems;
}

Result<std::string> run_advise(const AdviseOptions& options) {
  const Result<int64_t> bytes = parse_bytes(options.bytes);
  if (!bytes.ok()) return invalid_argument("--bytes: " + bytes.error().message);
  if (bytes.value() < 1) return invalid_argument("--bytes: must be at least 1");
  AdviceRequest request;
  request.bytes = static_cast<uint64_t>(bytes.value());
  request.chunks = TRY(count_of("--chunks", options.chunks, kMostChunks));
  std::vector<NamedAdvice> all;
  for (const NamedTopology& system : TRY(systems_of(options))) {
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
