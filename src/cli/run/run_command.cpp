#include "cli/run/run_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "base/config/value_text.h"
#include "cli/run/run.h"
#include "cli/run/run_arguments.h"

namespace trestle {
namespace {

constexpr int kMostRanks = 65536;

// As given; "" if not given.
struct ProgramText {
  std::string ranks;
  std::vector<std::string> environment;
  std::vector<std::string> command;
};

Error about(const std::string& option, const Error& error) {
  return invalid_argument(option + ": " + error.message);
}

}  // namespace

struct RunCommandOptions {
  CLI::App* run = nullptr;
  std::vector<ProgramArguments> arguments;
  std::vector<ProgramText> programs = std::vector<ProgramText>(1);
  std::string bind;
  std::string grace = "2s";
  std::string timeout;
  std::string output_folder;
  bool tag = false;
  bool no_prefix = false;
  bool verbose = false;
};

namespace {

void add_program_options(CLI::App& app, ProgramText& program) {
  app.add_option("-n,--ranks", program.ranks, "Number of ranks of this program")->type_name("N");
  app.add_option("--env", program.environment,
                 "Set a variable for this program's ranks; may be repeated\n"
                 "(NAME alone: its value in this command's environment)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

// Prints a usage line that ends with the program, which CLI11 cannot describe.
class RunFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: trestle run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS] [: -n N [--env ...] [--] PROGRAM ...]\n";
  }
};

constexpr const char* kFooter = R"(
Programs: options come before PROGRAM. What follows it, up to the next ':', are
its arguments. After a ':' comes another program, with its own -n and --env. All
other options are given once, for all programs. Numbers of ranks continue:
  trestle run -n 1 ./server : -n 7 --env THREADS=1 -- ./worker --verbose

What a rank gets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, TRESTLE_SECRET, and the variables of this command. Rank 0 gets this
command's standard input, the others none. Output is passed on in whole lines.

Binding: by default each rank is bound to one core, if there are enough cores
that this command may use (affinity mask, cpuset) and that no other trestle run
has bound ranks to. Otherwise no rank is bound. For ranks with several busy
threads use --bind socket or --bind none.

Ends: when a rank ends with an exit code other than 0, or is killed, the others
have the time of --grace to notice, report it and end. Those that still run get
SIGTERM, and after the same time again SIGKILL. SIGINT (Ctrl-C), SIGTERM, SIGHUP
and SIGQUIT are passed on at once; SIGKILL follows after the time of --grace or
at a second signal. SIGTSTP (Ctrl-Z) and SIGCONT stop and continue the ranks.
SIGUSR1 and SIGUSR2 are passed on. This command waits for a slow reader of its
output; after --timeout only until nothing was read for the time of --grace.

Processes that ranks start: a rank is a process group. The whole group gets these
signals, and is killed when the rank fails or this command is killed. A process
that has left the group (setsid, as daemons do) gets no signal. It is killed at
the end of a job that failed or was ended by a signal or --timeout, but not when
this command is killed. If all ranks succeed, remaining processes keep running.

Exit status: 0 if all ranks end with 0. Otherwise the first event counts: the
exit code of a rank that failed, or 128 + the signal that killed it; 128 + the
signal that ended the job; 124 if --timeout passed. 127: the program does not
exist; 126: it cannot be run; 2: an option is wrong, or the system refused what
the job needs; 1: the output could not be written.)";

Result<int> ranks_of(const ProgramText& text) {
  const auto ranks = parse_integer(text.ranks);
  if (!ranks.ok() || ranks.value() < 1 || ranks.value() > kMostRanks)
    return invalid_argument("-n: '" + text.ranks + "' is not a number of ranks from 1 to " +
                            std::to_string(kMostRanks));
  return static_cast<int>(ranks.value());
}

Result<std::pair<std::string, std::string>> variable_of(const std::string& text, const Environment& environment) {
  static constexpr std::array<const char*, 6> kOwn = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                      "MASTER_ADDR", "MASTER_PORT"};
  const size_t end = std::min(text.find('='), text.size());
  const std::string name = text.substr(0, end);
  if (name.empty())
    return invalid_argument("--env: '" + text + "' has no name: NAME=VALUE, or NAME of a variable that is set");
  if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
    return invalid_argument("--env: " + name + " is set for every rank by this command itself");
  if (end < text.size()) return std::pair(name, text.substr(end + 1));
  const auto known = environment.find(name);
  if (known == environment.end())
    return invalid_argument("--env: " + name + " is not set here: give it a value, " + name + "=VALUE");
  return std::pair(name, known->second);
}

Result<RankProgram> program_of(const ProgramText& text, const Environment& environment, bool only) {
  const std::string which = text.command.empty() ? "" : " of " + text.command.front();
  if (text.command.empty())
    return invalid_argument(std::string("run: the program is missing: trestle run -n 8 -- program") +
                            (only ? "" : "; each ':' must stand between two programs"));
  if (text.ranks.empty())
    return invalid_argument("run: the number of ranks" + which + " is missing: trestle run -n 8 -- program");
  RankProgram program;
  program.ranks = TRY(ranks_of(text));
  program.command = text.command;
  for (const std::string& variable : text.environment) {
    program.environment.push_back(TRY(variable_of(variable, environment)));
  }
  return program;
}

Result<int64_t> time_of(const std::string& option, const std::string& text) {
  const auto time_ns = parse_duration_ns(text);
  if (!time_ns.ok()) return about(option, time_ns.error());
  return time_ns;
}

Result<RunOptions> job_of(const RunCommandOptions& text, const Environment& environment) {
  RunOptions options;
  for (const ProgramText& program : text.programs) {
    options.programs.push_back(TRY(program_of(program, environment, text.programs.size() == 1)));
    if (options.ranks() > kMostRanks)
      return invalid_argument("-n: more than " + std::to_string(kMostRanks) + " ranks altogether");
  }
  if (!text.bind.empty()) {
    const auto bind = parse_bind(text.bind);
    if (!bind.ok()) return about("--bind", bind.error());
    options.bind = bind.value();
  }
  options.grace_ns = TRY(time_of("--grace", text.grace));
  if (!text.timeout.empty()) options.timeout_ns = TRY(time_of("--timeout", text.timeout));
  if (!text.timeout.empty() && options.timeout_ns == 0)
    return invalid_argument("--timeout: must be more than 0; without it there is no limit");
  options.output_folder = text.output_folder;
  if (text.tag && text.no_prefix) return invalid_argument("--tag and --no-prefix contradict each other");
  options.prefix = text.tag ? Prefix::kAlways : text.no_prefix ? Prefix::kNever : Prefix::kAuto;
  options.verbose = text.verbose;
  return options;
}

}  // namespace

RunCommand::RunCommand(CLI::App& app) : options_(std::make_unique<RunCommandOptions>()) {
  RunCommandOptions& o = *options_;
  o.run = app.add_subcommand("run", "Start ranks on this machine: trestle run -n 8 -- program arguments");
  o.run->formatter(std::make_shared<RunFormatter>());
  add_program_options(*o.run, o.programs.front());
  o.run->add_option("--bind", o.bind, "Where a rank may run: core, socket or none")->type_name("WHERE");
  o.run
      ->add_option("--grace", o.grace,
                   "Time for ranks to end by themselves after a failure,\n"
                   "and again after SIGTERM before they are killed (2s)")
      ->type_name("TIME");
  o.run->add_option("--timeout", o.timeout, "End the job after this time: 90s, 10m, 2h")->type_name("TIME");
  o.run
      ->add_option("--output-dir", o.output_folder,
                   "Ranks write into files there and not to this command's output:\n"
                   "rank.0.out, rank.0.err, ... (replaces them; numbers are padded)")
      ->type_name("DIR");
  o.run->add_flag("--tag", o.tag,
                  "Begin each line with its rank, [3]: the default, except in the\n"
                  "files of --output-dir");
  o.run->add_flag("--no-prefix", o.no_prefix, "Begin no line with its rank");
  o.run->add_flag("-v,--verbose", o.verbose, "Print which processors each rank is bound to, or why\nit is not bound");
  o.run->footer(kFooter);
}

RunCommand::~RunCommand() = default;

std::vector<std::string> RunCommand::own_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "run") {
    const TakesValue takes_value = [&](const std::string& name) {
      const CLI::Option* option = options_->run->get_option_no_throw(name);
      return option != nullptr && option->get_items_expected_min() > 0;
    };
    arguments.erase(arguments.begin());
    options_->arguments = split_programs(arguments, takes_value);
    options_->programs.front().command = options_->arguments.front().command;
    arguments = options_->arguments.front().options;
    arguments.insert(arguments.begin(), "run");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

bool RunCommand::parsed() const {
  return options_->run->parsed();
}

void RunCommand::parse_more_programs() {
  for (size_t i = 1; i < options_->arguments.size(); ++i) {
    const ProgramArguments& arguments = options_->arguments[i];
    ProgramText text;
    CLI::App behind("The program after a ':' of trestle run", "trestle run ... :");
    add_program_options(behind, text);
    std::vector<std::string> options(arguments.options.rbegin(), arguments.options.rend());
    behind.parse(options);
    text.command = arguments.command;
    options_->programs.push_back(std::move(text));
  }
}

Result<int> RunCommand::run(const Environment& environment) const {
  return run_ranks(TRY(job_of(*options_, environment)), environment);
}

}  // namespace trestle
