#include "cli/train/train_command.h"

#include <CLI/CLI.hpp>

#include "cli/train/train.h"

namespace trestle {

struct TrainCommandOptions {
  CLI::App* train = nullptr;
  TrainOptions given;
};

namespace {

std::string policy_names() {
  std::string names;
  for (const GradientPolicy& policy : gradient_policies()) {
    names.append(names.empty() ? "" : ", ").append(policy.name).append(policy.syntax);
  }
  return names;
}

}  // namespace

TrainCommand::TrainCommand(CLI::App& app) : options_(std::make_unique<TrainCommandOptions>()) {
  options_->train = app.add_subcommand("train", "Predict a training step under every policy that orders its gradients");
  CLI::App& command = *options_->train;
  TrainOptions& o = options_->given;
  command.add_option("--workload", o.workload,
                     "A built-in network (resnet50, resnet50@k80), or a JSON file of tensors");
  command.add_option("--compute", o.compute, "forward,backward: seconds of a network's passes");
  command.add_option("--cost", o.cost, "a,b: seconds and seconds per byte of one all-reduce");
  command.add_option("--cost-half", o.cost_half, "The same of a reduce-scatter and an all-gather (half of --cost)");
  command.add_option("--network", o.network,
                     "alpha,beta,gamma,workers,algorithm: seconds per message, per byte sent and per byte added");
  command.add_option("--policy", o.policies, "all, or some of " + policy_names() + " (all)");
  command.add_option("--allow", o.allow, "What all and auto may do besides: stale (updates with older gradients)");
  command.add_flag("--compact", o.compact, "Join tensors without compute time to the one before them");
  command.add_flag("--json", o.json, "Print one JSON object, with the groups of tensors");
  command.add_flag("--list", o.list, "Print the built-in networks and the sources of their compute times");
}

TrainCommand::~TrainCommand() = default;

bool TrainCommand::parsed() const {
  return options_->train->parsed();
}

Result<std::string> TrainCommand::run() const {
  return train(options_->given);
}

}  // namespace trestle
