#include "cli/topo/topo_command.h"

#include <CLI/CLI.hpp>

#include "base/host.h"
#include "cli/plan/info.h"
#include "cli/plan/topology_options.h"
#include "cli/topo/topo_ranks.h"
#include "cli/topo/topo_view.h"
#include "cli/write_file.h"

namespace trestle {

struct TopoCommandOptions {
  CLI::App* topo = nullptr;
  TopologyOptions topology;
  std::string picture;
  bool json = false;
};

namespace {

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

}  // namespace

TopoCommand::TopoCommand(CLI::App& app) : options_(std::make_unique<TopoCommandOptions>()) {
  CLI::App* topo = app.add_subcommand("topo", "Draw this host, its network interfaces, and the dimensions");
  options_->topo = topo;
  add_topology_options(*topo, options_->topology);
  topo->add_flag("--json", options_->json, "Print JSON; with dimensions it is a topology file");
  topo->add_option("--plot", options_->picture, "Also write an SVG picture to this file");
  topo->add_option("--svg", options_->picture)->group("");  // its first name
}

TopoCommand::~TopoCommand() = default;

bool TopoCommand::parsed() const {
  return options_->topo->parsed();
}

Result<std::string> TopoCommand::run(const Config& config) const {
  const RailRequest request = TRY(rail_request(config));
  Machine machine = TRY(read_machine(request, usable_cpu_mask()));
  RanksOfJob job = TRY(gather_ranks(config, machine));
  if (job.rank != 0) return std::string();
  const TopoView view = TRY(view_of(*options_, config, request, std::move(machine), std::move(job)));
  if (!options_->picture.empty()) TRY(write_file(options_->picture, topo_svg(view)));
  return options_->json ? topo_json(view) : topo_text(view);
}

}  // namespace trestle
