// The trestle command: starts ranks and shows what the library would do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/config.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "cli/calibrate/calibrate.h"
#include "cli/env.h"
#include "cli/plan/info.h"
#include "cli/plan/topology_options.h"
#include "cli/run/run_command.h"
#include "cli/sim/sim_command.h"
#include "cli/topo/topo_command.h"
#include "cli/train/train_command.h"
#include "trestle/trestle.h"

namespace {

constexpr int kUsage = 2;  // exit code of a bad command line or variable

std::string trestle_version() {
  return std::to_string(TRESTLE_MAJOR) + "." + std::to_string(TRESTLE_MINOR) + "." + std::to_string(TRESTLE_PATCH);
}

int say(const trestle::Result<std::string>& text) {
  if (!text.ok()) {
    std::fprintf(stderr, "trestle: %s\n", text.error().message.c_str());
    return kUsage;
  }
  std::fputs(text.value().c_str(), stdout);
  return 0;
}

struct EnvArguments {
  trestle::EnvOptions shown;
  bool markdown = false;
};

struct PlanArguments {
  trestle::TopologyOptions topology;
  std::string collective;
  std::string bytes;
  std::string type = "float";
};

int run(trestle::RunCommand& command) {
  const auto status = command.run(trestle::process_environment());
  return status.ok() ? status.value() : say(status.error());
}

// Reports a variable that cannot be read instead of ignoring it.
int run(const trestle::Command& command) {
  const auto& config = trestle::process_config_result();
  return say(config.ok() ? command.run(config.value()) : config.error());
}

// `trestle help sim paper` is `trestle sim paper --help`, and `trestle version` is `trestle --version`.
std::vector<char*> as_flags(int argc, char** argv) {
  static char help[] = "--help";
  static char version[] = "--version";
  std::vector<char*> words(argv, argv + argc);
  if (words.size() > 1 && std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(help);
  } else if (words.size() > 1 && std::string_view(words[1]) == "version") {
    words[1] = version;
  }
  return words;
}

// CLI11 says of such a word only that it was not expected.
trestle::Status check_subcommands(const CLI::App& root, const std::vector<char*>& words) {
  const CLI::App* app = &root;
  for (size_t i = 1; i < words.size() && words[i][0] != '-'; ++i) {
    std::vector<std::string_view> known;
    for (const CLI::App* each : app->get_subcommands({})) known.push_back(each->get_name());
    if (known.empty()) return {};
    if (std::ranges::find(known, words[i]) == known.end())
      return trestle::unknown_name(words[i], "a subcommand", known);
    app = app->get_subcommand(words[i]);
  }
  return {};
}

// The exit code, if the command line is wrong or asks only for help or the version.
std::optional<int> parse(CLI::App& app, trestle::RunCommand& run_command, std::vector<char*> words) {
  if (const trestle::Status known = check_subcommands(app, words); !known.ok()) return say(known.error());
  try {
    app.parse(run_command.own_arguments(static_cast<int>(words.size()), words.data()));
    run_command.parse_more_programs();
    // CLI11 reports only by exceptions. CallForHelp is one too.
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return std::nullopt;
}

trestle::Command add_env(CLI::App& app, EnvArguments& arguments) {
  CLI::App* env = app.add_subcommand("env", "Print the environment variables with their values");
  env->add_option("word", arguments.shown.word, "Only those with this word in their name, value or meaning");
  env->add_flag("--changed", arguments.shown.changed, "Only those that have another value than the default");
  env->add_flag("--json", arguments.shown.json, "Print a JSON list");
  env->add_flag("--markdown", arguments.markdown, "Print docs/environment.md instead");
  return {env, [&arguments](const auto& config) { return trestle::env_text(config, arguments.shown); }};
}

trestle::Command add_plan(CLI::App& app) {
  const auto o = std::make_shared<PlanArguments>();
  CLI::App* plan = app.add_subcommand("plan", "Explain which schedule is chosen, from which candidates, and why");
  plan->add_option("collective", o->collective, "all_reduce, all_gather, ...")->required();
  plan->add_option("bytes", o->bytes,
                   "Size of the buffer: 1.5M; or, for all-gather-v and reduce-scatter-v, one per rank: 1M,4K,4K,0")
      ->required();
  plan->add_option("--type", o->type, "Element type (float)");
  trestle::add_topology_options(*plan, o->topology);
  return {plan, [o](const auto& config) {
            return trestle::describe_plan(o->topology, config, o->collective, o->bytes, o->type);
          }};
}

trestle::Command add_calibrate(CLI::App& app) {
  struct Options {
    std::string out;
    bool list = false;
    bool forget = false;
  };
  const auto o = std::make_shared<Options>();
  CLI::App* calibrate = app.add_subcommand(
      "calibrate", "Measure the links between the ranks of a job: trestle run -n 8 -- trestle calibrate");
  CLI::Option* out = calibrate->add_option("--out", o->out, "Topology file to write");
  CLI::Option* list = calibrate->add_flag("--list", o->list, "Print what is kept of earlier measurements instead");
  CLI::Option* forget = calibrate->add_flag("--forget", o->forget, "Remove all that is kept of them instead");
  list->excludes(out);
  forget->excludes(out)->excludes(list);
  return {calibrate, [o](const auto& config) {
            if (o->list) return trestle::list_calibrations(config);
            if (o->forget) return trestle::forget_calibrations(config);
            return trestle::calibrate(config, o->out);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trestle: collective communication between ranks, over all their links", "trestle");
  app.require_subcommand(1);
  EnvArguments env;
  trestle::RunCommand run_command(app);
  std::vector<trestle::Command> commands;
  commands.push_back(add_env(app, env));
  commands.push_back(trestle::add_topo_command(app));
  commands.push_back(add_plan(app));
  commands.push_back(trestle::add_sim_command(app));
  commands.push_back(trestle::add_train_command(app));
  commands.push_back(add_calibrate(app));
  app.set_version_flag("--version", trestle_version(), "Print the version");
  app.add_subcommand("version", "Print the version");
  app.add_subcommand("help", "Print the options of a subcommand: trestle help plan");
  if (const auto ended = parse(app, run_command, as_flags(argc, argv))) return *ended;
  if (run_command.parsed()) return run(run_command);
  if (env.markdown) return say(trestle::config_markdown());
  return run(*std::ranges::find_if(commands, [](const trestle::Command& each) { return each.app->parsed(); }));
}
