#include "cli/train/train_command.h"

#include <CLI/CLI.hpp>

#include "cli/train/choose.h"
#include "cli/train/train.h"

namespace trestle {

struct TrainCommandOptions {
  CLI::App* train = nullptr;
  CLI::App* choose = nullptr;
  TrainOptions given;
  ChooseOptions choice;
};

namespace {

std::string policy_names() {
  std::string names;
  for (const GradientPolicy& policy : gradient_policies()) {
    names.append(names.empty() ? "" : ", ").append(policy.name).append(policy.syntax);
  }
  return names;
}

void add_step_options(CLI::App& command, TrainOptions& o) {
  command.add_option("--workload", o.workload,
                     "A built-in network (resnet50, resnet50@k80), or a JSON file of tensors");
  command.add_option("--compute", o.compute, "forward,backward: seconds of a network's passes");
  command.add_option("--cost", o.cost, "a,b: seconds and seconds per byte of one all-reduce");
  command.add_option("--cost-half", o.cost_half, "The same of a reduce-scatter and an all-gather (half of --cost)");
  command.add_option("--network", o.network,
                     "alpha,beta,gamma,workers,algorithm: seconds per message, per byte sent and per byte added");
  command.add_option("--topo", o.topo, "JSON topology file: costs as the library's own model predicts them");
  command.add_option("--links", o.links,
                     "mu of every link, how many times as long as the first one it takes: 1,1.65; for deft");
  command.add_option("--policy", o.policies, "all, or some of " + policy_names() + " (all)");
  command.add_option("--allow", o.allow, "What all and auto may do besides: stale (updates with older gradients)");
  command.add_option("--plot", o.plot, "Write an SVG picture of the policies' steps to this file");
  command.add_option("--scale", o.scale, "4..2048: the same on so many workers of --network, doubling");
  command.add_option("--preset", o.preset, "A table or figure of a paper, beside known numbers; --list names them");
  command.add_flag("--compact", o.compact, "Join tensors without compute time to the one before them");
  command.add_flag("--json", o.json, "Print one JSON object, with the groups of tensors");
  command.add_flag("--list", o.list,
                   "Print the built-in networks, the sources of their compute times, and the presets");
}

CLI::App* add_choose(CLI::App& train, ChooseOptions& o) {
  CLI::App* command =
      train.add_subcommand("choose", "Choose the collective that sends a compressed gradient in the least time");
  command->add_option("--bytes", o.bytes, "Bytes of the whole gradient: 25M");
  command->add_option("--ratio", o.ratio, "The part of it that is sent, above 0 and at most 1");
  command->add_option("--workers", o.workers, "Number of workers, at least 2");
  command->add_option("--alpha", o.alpha, "Seconds per message");
  command->add_option("--beta", o.beta, "Seconds per byte");
  command->add_flag("--json", o.json, "Print one JSON object");
  return command;
}

}  // namespace

TrainCommand::TrainCommand(CLI::App& app) : options_(std::make_unique<TrainCommandOptions>()) {
  options_->train = app.add_subcommand("train", "Predict a training step under every policy that orders its gradients");
  add_step_options(*options_->train, options_->given);
  options_->choose = add_choose(*options_->train, options_->choice);
}

TrainCommand::~TrainCommand() = default;

bool TrainCommand::parsed() const {
  return options_->train->parsed();
}

Result<std::string> TrainCommand::run(const Config& config) const {
  const bool chooses = options_->choose->parsed();
  if (!chooses) {
    TrainOptions given = options_->given;
    given.config = config;
    return train(given);
  }
  // Options before the subcommand's name belong to train, and the subcommand would ignore them.
  for (const CLI::Option* option : options_->train->parse_order()) {
    return Error{Code::kInvalidArgument, option->get_name() + " must follow the subcommand: trestle train choose"};
  }
  return choose_collective(options_->choice);
}

}  // namespace trestle
