#include "cli/topo/topo_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "base/host.h"
#include "cli/plan/info.h"
#include "cli/plan/topology_options.h"
#include "cli/topo/topo_ranks.h"
#include "cli/topo/topo_view.h"
#include "cli/write_file.h"

namespace trestle {

namespace {

struct TopoCommandOptions {
  TopologyOptions topology;
  std::string picture;
  bool json = false;
};

// The dimensions that the command line asks for, else those that a communicator of the job's ranks would have. None if
// no dimensions are given.
Result<std::optional<Topology>> topology_to_show(const TopologyOptions& options, const Config& config,
                                                 const RanksOfJob& job) {
  const bool asked = !options.dims.empty() || !options.file.empty() || options.ranks > 0;
  const bool configured = !config.dimensions.empty() || !config.topology_file.empty();
  if (!asked && !job.places.empty()) {
    Topology topology = TRY(choose_topology(topology_request(config), job.places));
    share_processors(job.places, topology);
    return std::optional(topology);
  }
  if (!asked && !configured) return std::optional<Topology>();
  return std::optional(TRY(topology_of(options, config)));
}

DimensionRailsView rails_view(const Machine& machine, const RailRequest& request, const Dimension& dimension) {
  DimensionRailsView view;
  view.wanted = facts_of(dimension.transport).has_interfaces;
  if (!view.wanted) return view;
  const auto rails = rails_of(machine, request, dimension.interface);
  if (rails.ok())
    view.rails = rails.value();
  else
    view.reason = rails.error().message;
  return view;
}

Result<TopoView> view_of(const TopoCommandOptions& options, const Config& config, const RailRequest& request,
                         Machine machine, RanksOfJob job) {
  TopoView view;
  view.topology = TRY(topology_to_show(options.topology, config, job));
  if (view.topology) {
    for (const Dimension& dimension : view.topology->dimensions)
      view.rails.push_back(rails_view(machine, request, dimension));
  }
  view.machine = std::move(machine);
  view.ranks = std::move(job.ranks);
  view.others = std::move(job.others);
  return view;
}

Result<std::string> run_topo(const TopoCommandOptions& options, const Config& config) {
  const RailRequest request = TRY(rail_request(config));
  Machine machine = TRY(read_machine(request, usable_cpu_mask()));
  RanksOfJob job = TRY(gather_ranks(config, machine));
  if (job.rank != 0) return std::string();
  const TopoView view = TRY(view_of(options, config, request, std::move(machine), std::move(job)));
  if (!options.picture.empty()) TRY(write_file(options.picture, topo_svg(view)));
  return options.json ? topo_json(view) : topo_text(view);
}

}  // namespace

Command add_topo_command(CLI::App& app) {
  const auto options = std::make_shared<TopoCommandOptions>();
  CLI::App* topo = app.add_subcommand("topo", "Draw this host, its network interfaces, and the dimensions");
  add_topology_options(*topo, options->topology);
  topo->add_flag("--json", options->json, "Print JSON; with dimensions it is a topology file");
  topo->add_option("--plot", options->picture, "Also write an SVG picture to this file");
  topo->add_option("--svg", options->picture)->group("");  // its first name
  return {topo, [options](const Config& config) { return run_topo(*options, config); }};
}

}  // namespace trestle
