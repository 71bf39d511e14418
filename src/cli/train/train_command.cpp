#include "cli/train/train_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/train/choose.h"
#include "cli/train/study.h"
#include "cli/train/train.h"

namespace trestle {

namespace {

struct TrainCommandOptions {
  CLI::App* train = nullptr;
  CLI::App* choose = nullptr;
  CLI::App* study = nullptr;
  TrainOptions given;
  ChooseOptions choice;
  StudyOptions studied;
};

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
  command.add_option("--copy", o.copy,
                     "Seconds per byte by which copies into fused buffers, and out of them, lengthen messages (0)");
  command.add_option("--network", o.network,
                     "alpha,beta,gamma,workers,algorithm: seconds per message, per byte sent and per byte added");
  command.add_option("--topo", o.topo, "JSON topology file: costs as the library's own model predicts them");
  command.add_option("--links", o.links,
                     "mu of every link, how many times as long as the first one it takes: 1,1.65; for deft");
  command.add_option("--policy", o.policies, "all, or some of " + policy_names() + " (all)");
  command.add_option("--allow", o.allow,
                     "What all and auto may do besides: stale (updates with older gradients), compression (only the "
                     "largest elements travel)");
  command.add_option("--loss", o.loss,
                     "loss,least,rate,drift,deviation,batch: how the loss answers to updates; deft then updates as "
                     "often as that asks for");
  command.add_option("--loss-epsilon", o.loss_epsilon,
                     "Most relative distance between the expected losses after single and merged updates (0.01)");
  command.add_option("--loss-merged", o.loss_merged, "What an update of several steps applies: sum or mean (sum)");
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

CLI::App* add_study(CLI::App& train, StudyOptions& o) {
  CLI::App* command = train.add_subcommand(
      "study", "Predict training iterations of the Themis paper's four networks under every schedule of chunks");
  command->add_option("--topo", o.topology_file, "JSON topology file (the paper's six systems)");
  command->add_option("--chunks", o.chunks, "Number of chunks (64)");
  command->add_flag("--json", o.json, "Print one JSON object");
  command->add_option("--workload", o.workload, "One of the four networks (all)");
  command->add_option("--batch", o.batch,
                      "Samples per rank, or per group of ranks that share a model; for one workload");
  command->add_option("--overlap", o.overlap,
                      "Overlap gradients with the backward pass: none, or buckets of 25 MiB (none)");
  command->add_option("--tflops", o.accelerator.peak_tflops, "Speed of a rank, 10^12 operations per second (312)");
  command->add_option("--attained", o.accelerator.attained, "Fraction of that speed that layers reach, 0 to 1 (0.75)");
  command->add_option("--memory", o.accelerator.memory_gbytes, "Memory bandwidth of a rank, GB/s (2039)");
  return command;
}

Result<std::string> run_train(const TrainCommandOptions& options, const Config& config) {
  const bool chooses = options.choose->parsed();
  if (!chooses && !options.study->parsed()) {
    TrainOptions given = options.given;
    given.config = config;
    return train(given);
  }
  // Options before the subcommand's name belong to train, and the subcommand would ignore them.
  const std::string name = chooses ? "choose" : "study";
  for (const CLI::Option* option : options.train->parse_order()) {
    return Error{Code::kInvalidArgument, option->get_name() + " must follow the subcommand: trestle train " + name};
  }
  return chooses ? choose_collective(options.choice) : study_iterations(options.studied);
}

}  // namespace

Command add_train_command(CLI::App& app) {
  const auto options = std::make_shared<TrainCommandOptions>();
  options->train = app.add_subcommand("train", "Predict a training step under every policy that orders its gradients");
  add_step_options(*options->train, options->given);
  options->choose = add_choose(*options->train, options->choice);
  options->study = add_study(*options->train, options->studied);
  return {options->train, [options](const Config& config) { return run_train(*options, config); }};
}

}  // namespace trestle
