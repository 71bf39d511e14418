#include "cli/sim/sim_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text/value_text.h"
#include "cli/option_values.h"
#include "cli/sim/design_commands.h"
#include "cli/sim/paper_study.h"
#include "cli/sim/paper_study_svg.h"
#include "cli/sim/paper_study_text.h"
#include "cli/sim/sim_run.h"
#include "cli/sim/sim_svg.h"
#include "cli/sim/sim_text.h"
#include "cli/write_file.h"

namespace trestle {

namespace {

// As on the command line; "" if not given.
struct SimCommandOptions {
  std::vector<Command> designs;
  CLI::App* sim = nullptr;
  CLI::App* paper = nullptr;
  std::string topology_file;
  std::string collective = "allreduce";
  std::string bytes = "256M";
  std::string chunks = "64";
  std::string sched;
  std::string intra;
  std::string model = "steps";
  std::string work_gbps;
  std::string work_launch;
  std::vector<std::string> rails;
  std::string seed;
  std::string trace_file;
  std::string plot_file;
  bool json = false;
  bool reducing_switches = false;
};

Result<Collective> collective_of(const std::string& name) {
  const Collective collective = TRY(parse_collective(name));
  const bool known = collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
                     collective == Collective::kAllGather;
  if (!known)
    return invalid_argument("--collective: " + name +
                            " cannot be simulated; it must be all_reduce, reduce_scatter or all_gather");
  return collective;
}

// --work-gbps and --work-launch.
Result<SimWork> work_of(const SimCommandOptions& options, SimModel model) {
  static constexpr int64_t kMostGbps = 1'000'000;
  SimWork work;
  if (options.work_gbps.empty() && options.work_launch.empty()) return work;
  if (model != SimModel::kEngine)
    return invalid_argument("--work-gbps, --work-launch: only --model engine has reductions and copies that take time");
  if (options.work_gbps.empty()) return invalid_argument("--work-launch: needs --work-gbps");
  work.mbps = uint64_t{TRY(count_value("--work-gbps", options.work_gbps, 1, kMostGbps))} * 1000;
  if (options.work_launch.empty()) return work;
  const Result<int64_t> launch_ns = parse_duration_ns(options.work_launch);
  if (!launch_ns.ok()) return invalid_argument("--work-launch: " + launch_ns.error().message);
  if (launch_ns.value() < 0) return invalid_argument("--work-launch: " + options.work_launch + " is less than 0");
  work.launch_ns = static_cast<uint64_t>(launch_ns.value());
  return work;
}

// --rail and --seed.
Status read_rails(const SimCommandOptions& options, const Config& config, SimCase& sim_case) {
  if (sim_case.model != SimModel::kEngine && !(options.rails.empty() && options.seed.empty()))
    return invalid_argument("--rail, --seed: only --model engine simulates rails one by one");
  for (const std::string& text : options.rails) {
    const auto request = parse_sim_rail(text);
    if (!request.ok()) return invalid_argument("--rail: " + request.error().message);
    sim_case.rails.push_back(request.value());
  }
  if (!options.seed.empty()) {
    const Result<int64_t> seed = parse_integer(options.seed);
    if (!seed.ok() || seed.value() < 0)
      return invalid_argument("--seed: '" + options.seed + "' is no whole number from 0 on");
    sim_case.seed = static_cast<uint64_t>(seed.value());
  }
  sim_case.whole_bytes = static_cast<uint64_t>(config.eager_bytes);
  sim_case.rail_silence_ns = config.rail_timeout_ns;
  return {};
}

// Replaces the variable's name in an error by the option's name.
Error about_option(Error error, const std::string& variable, const std::string& option) {
  if (error.message.starts_with(variable)) error.message.replace(0, variable.size(), option);
  return error;
}

Result<SimCase> case_of(const SimCommandOptions& options, const Config& config) {
  SimCase sim_case;
  const std::string& file = options.topology_file.empty() ? config.topology_file : options.topology_file;
  if (file.empty()) return invalid_argument("no topology: give --topo FILE or set TRESTLE_TOPO_FILE");
  PaperCase& operation = sim_case.operation;
  operation.policy = options.sched.empty() ? config.schedule : options.sched;
  operation.intra = options.intra.empty() ? config.intra : options.intra;
  const auto policy = find_policy(operation.policy);
  if (!policy.ok()) return about_option(policy.error(), "TRESTLE_SCHED", "--sched");
  const auto rule = find_priority_rule(operation.intra);
  if (!rule.ok()) return about_option(rule.error(), "TRESTLE_INTRA", "--intra");
  const auto model = parse_sim_model(options.model);
  if (!model.ok()) return invalid_argument("--model: " + model.error().message);
  sim_case.model = model.value();
  sim_case.work = TRY(work_of(options, sim_case.model));
  TRY(read_rails(options, config, sim_case));
  operation.collective = TRY(collective_of(options.collective));
  operation.bytes = TRY(bytes_value("--bytes", options.bytes));
  operation.chunks = TRY(count_value("--chunks", options.chunks, 1, kMostChunks));
  operation.topology = TRY(read_topology_file(file));
  if (config.segment_bytes > 0) sim_case.segments.bytes = static_cast<uint64_t>(config.segment_bytes);
  sim_case.in_flight = static_cast<uint32_t>(config.phases_in_flight);
  return sim_case;
}

Result<std::string> run_sim(const SimCommandOptions& options, const Config& config) {
  const SimView view = TRY(run_case(TRY(case_of(options, config))));
  if (!options.trace_file.empty()) TRY(write_file(options.trace_file, sim_trace(view)));
  if (!options.plot_file.empty()) TRY(write_file(options.plot_file, sim_svg(view)));
  if (!options.json) return sim_text(view);
  for (const std::string& note : view.notes) std::fprintf(stderr, "trestle: %s\n", note.c_str());
  return sim_json(view);
}

Result<std::string> run_study(const SimCommandOptions& options) {
  for (const char* option :
       {"--bytes", "--sched", "--intra", "--trace", "--work-gbps", "--work-launch", "--rail", "--seed"}) {
    if (options.sim->count(option) > 0) return invalid_argument(std::string(option) + ": sim paper has no such option");
  }
  StudyRequest request;
  request.collective = TRY(collective_of(options.collective));
  request.chunks = TRY(count_value("--chunks", options.chunks, 1, kMostChunks));
  request.reducing_switches = options.reducing_switches;
  const auto model = parse_sim_model(options.model);
  if (!model.ok()) return invalid_argument("--model: " + model.error().message);
  if (model.value() == SimModel::kPaper)
    return invalid_argument("--model: sim paper compares the paper's model with steps or engine");
  request.gap_model = model.value();
  request.systems = TRY(systems_in(options.topology_file));
  const PaperStudy study = TRY(study_paper(request));
  if (!options.plot_file.empty()) TRY(write_file(options.plot_file, study_svg(study)));
  return options.json ? study_json(study) : study_text(study);
}

Result<std::string> run_design(const SimCommandOptions& options, const Command& design, const Config& config) {
  // Options before the study's name belong to sim, and the study would ignore them.
  for (const CLI::Option* option : options.sim->parse_order()) {
    return invalid_argument(option->get_name() + " must follow the name of the study: trestle sim advise --topo FILE");
  }
  return design.run(config);
}

Result<std::string> run(const SimCommandOptions& options, const Config& config) {
  for (const Command& design : options.designs) {
    if (design.app->parsed()) return run_design(options, design, config);
  }
  return options.paper->parsed() ? run_study(options) : run_sim(options, config);
}

}  // namespace

Command add_sim_command(CLI::App& app) {
  const auto options = std::make_shared<SimCommandOptions>();
  SimCommandOptions& o = *options;
  const auto add_shared = [&o](CLI::App* command) {
    command->add_option("--topo", o.topology_file, "JSON topology file");
    command->add_option("--collective", o.collective, "all_reduce, reduce_scatter or all_gather (all_reduce)");
    command->add_option("--chunks", o.chunks, "Number of chunks (64)");
    command->add_flag("--json", o.json, "Print one JSON object");
    command->add_option("--plot", o.plot_file, "Write an SVG picture to this file");
  };
  o.sim = app.add_subcommand("sim", "Simulate one operation on a topology: time, utilisation, phases on the links");
  add_shared(o.sim);
  o.sim->add_option("--bytes", o.bytes, "Bytes per rank before the operation (256M)");
  o.sim->add_option("--sched", o.sched, "Policy: baseline, themis, ... (TRESTLE_SCHED)");
  o.sim->add_option("--intra", o.intra,
                    "How links choose the next phase, for policy themis: fifo or scf (TRESTLE_INTRA)");
  o.sim->add_option("--model", o.model,
                    "paper: whole phases; steps: messages and segments; engine: the engine of every rank (steps)");
  o.sim->add_option("--work-gbps", o.work_gbps,
                    "engine: speed of reductions and copies (10^9 bit/s), which run one after the other, as on a "
                    "device; default: they take no time");
  o.sim->add_option("--work-launch", o.work_launch, "engine: additional time of each reduction or copy: 5us (0)");
  o.sim
      ->add_option("--rail", o.rails,
                   "engine: what happens to a rail of the topology file, for all ranks: "
                   "NAME:latency=50us,jitter=5us,burst=16K,down@0.5,up@1.2,drop@2,pass@3,rate@0.3=0.1 (times from the "
                   "beginning, "
                   "part of its rate); may be given again for other rails")
      ->allow_extra_args(false);
  o.sim->add_option("--seed", o.seed, "engine: seed of the jitter of rails (1)");
  o.sim->add_option("--trace", o.trace_file, "Write a Chrome trace to this file");
  o.paper = o.sim->add_subcommand("paper", "Repeat the study of the Themis paper, with all policies");
  add_shared(o.paper);
  o.paper->add_option("--model", o.model,
                      "Model to compare with the paper's: steps, or engine, which takes minutes (steps)");
  o.paper->add_flag("--reducing-switches", o.reducing_switches, "Switches add and multicast (section 4.5)");
  o.designs = add_design_commands(*o.sim);
  return {o.sim, [options](const Config& config) { return run(*options, config); }};
}

}  // namespace trestle
