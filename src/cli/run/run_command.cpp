#include "cli/run/run_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "base/text/value_text.h"
#include "cli/run/job.h"

namespace trestle {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<const char*, 6> kOwnVariables = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                      "MASTER_ADDR", "MASTER_PORT"};

void add_program_options(CLI::App& app, RankProgram& program) {
  app.add_option("-n,--ranks", program.ranks, "Number of ranks of this program")
      ->type_name("N")
      ->required()
      ->check(CLI::Range(1, 65536).description(""));
  app.add_option("--env", program.variables,
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
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

constexpr const char* kFooter = R"(
Programs: options come before PROGRAM. What follows it, up to the next ':', are
its arguments. After a ':' comes another program, with its own -n and --env. All
other options are given once, for all programs. Numbers of ranks continue:
  trestle run -n 1 ./server : -n 7 --env THREADS=1 -- ./worker --verbose

What a rank gets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, TRESTLE_SECRET, TRESTLE_JOB, and the variables of this command.
Rank 0 gets this command's standard input, the others none. Output is passed on
in whole lines.

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
output until a signal comes; after --timeout only until nothing was read for the
time of --grace.

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

// For "-n", "-vn", "-n4", "--env", "--env=A=1": whether the value is the next argument.
bool next_is_value(const CLI::App& app, const std::string& argument) {
  const auto takes_value = [&app](const std::string& name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_min() > 0;
  };
  if (argument.starts_with("--")) return argument.find('=') == std::string::npos && takes_value(argument);
  for (size_t i = 1; i < argument.size(); ++i) {
    if (takes_value({'-', argument[i]})) return i + 1 == argument.size();
  }
  return false;
}

// Of "[OPTIONS] [--] PROGRAM [ARGUMENTS] [: ...]" moves everything up to the ':': the options are returned, the program
// and its arguments, in which nothing is an option of this command, go to `command`.
Words take_program(const CLI::App& app, Words& arguments, Words& command) {
  auto at = arguments.begin();
  const auto more = [&] { return at != arguments.end() && *at != ":"; };
  Words options;
  while (more() && *at != "--" && at->size() > 1 && at->front() == '-') {
    const bool value = next_is_value(app, *at);
    options.push_back(*at++);
    if (value && at != arguments.end()) options.push_back(*at++);
  }
  if (more() && *at == "--") ++at;
  while (more()) command.push_back(*at++);
  arguments.erase(arguments.begin(), at);
  return options;
}

Result<int64_t> parse_limit_ns(const std::string& text) {
  const int64_t limit_ns = TRY(parse_duration_ns(text));
  if (limit_ns == 0) return Error{Code::kInvalidArgument, "must be more than 0; without it there is no limit"};
  return limit_ns;
}

Status set_variables(RankProgram& program, const Environment& environment) {
  const auto bad = [](const std::string& what) { return Error{Code::kInvalidArgument, "--env: " + what}; };
  for (const std::string& text : program.variables) {
    const size_t end = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, end);
    const auto known = environment.find(name);
    if (name.empty()) return bad("'" + text + "' has no name: NAME=VALUE, or NAME of a variable that is set");
    if (std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end())
      return bad(name + " is set for every rank by this command itself");
    if (end == text.size() && known == environment.end())
      return bad(name + " is not set here: give it a value, " + name + "=VALUE");
    program.environment[name] = end == text.size() ? known->second : text.substr(end + 1);
  }
  return {};
}

}  // namespace

RunCommand::RunCommand(CLI::App& app)
    : run_(app.add_subcommand("run", "Start ranks on this machine: trestle run -n 8 -- program arguments")) {
  RunOptions& o = options_;
  run_->formatter(std::make_shared<RunFormatter>());
  add_program_options(*run_, o.programs.emplace_back());
  const auto add = [this](const char* name, auto& value, auto parse, const char* type, const char* help) {
    const auto why_wrong = [parse](const std::string& text) {
      const auto parsed = parse(text);
      return parsed.ok() ? std::string() : parsed.error().message;
    };
    const auto take = [&value, parse](const std::string& text) { value = parse(text).value(); };
    run_->add_option_function<std::string>(name, take, help)->type_name(type)->check(why_wrong);
  };
  add("--bind", o.bind, parse_bind, "WHERE", "Where a rank may run: core, socket or none");
  add("--grace", o.grace_ns, parse_duration_ns, "TIME",
      "Time for ranks to end by themselves after a failure,\nand again after SIGTERM before they are killed (2s)");
  add("--timeout", o.timeout_ns, parse_limit_ns, "TIME", "End the job after this time: 90s, 10m, 2h");
  run_->add_option("--output-dir", o.output_folder,
                   "Ranks write into files there and not to this command's output:\n"
                   "rank.0.out, rank.0.err, ... (replaces them; numbers are padded)")
      ->type_name("DIR");
  CLI::Option* tag = run_->add_flag_callback(
      "--tag", [&o] { o.prefix = Prefix::kAlways; },
      "Begin each line with its rank, [3]: the default, except in the\n"
      "files of --output-dir");
  run_->add_flag_callback(
          "--no-prefix", [&o] { o.prefix = Prefix::kNever; }, "Begin no line with its rank")
      ->excludes(tag);
  run_->add_flag("-v,--verbose", o.verbose, "Print which processors each rank is bound to, or why\nit is not bound");
  run_->footer(kFooter);
}

Words RunCommand::own_arguments(int argc, char** argv) {
  Words arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "run") {
    more_.assign(arguments.begin() + 1, arguments.end());
    arguments = take_program(*run_, more_, options_.programs.front().command);
    arguments.insert(arguments.begin(), "run");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

bool RunCommand::parsed() const {
  return run_->parsed();
}

void RunCommand::parse_more_programs() {
  while (!more_.empty()) {
    more_.erase(more_.begin());  // the ':'
    CLI::App behind("The program after a ':' of trestle run", "trestle run ... :");
    RankProgram& program = options_.programs.emplace_back();
    add_program_options(behind, program);
    Words options = take_program(behind, more_, program.command);
    std::reverse(options.begin(), options.end());
    behind.parse(options);
  }
}

Result<int> RunCommand::run(const Environment& environment) {
  for (RankProgram& program : options_.programs) {
    if (program.command.empty())
      return invalid_argument("run: a program is missing: trestle run -n 8 -- program [: -n 1 -- program ...]");
    TRY(set_variables(program, environment));
  }
  return run_ranks(options_, environment);
}

}  // namespace trestle
