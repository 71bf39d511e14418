#include "perf/train_step/arguments.h"

#include <charconv>
#include <climits>
#include <cmath>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "gradient/policy/policies.h"
#include "perf/driver/flags.h"

namespace trestle::perf {
namespace {

using Arguments = TrainStepArguments;

std::optional<double> real(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc() || read.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Two numbers that are not negative.
std::optional<MessageCost> pair(const std::string& text) {
  const std::vector<std::string> words = trestle::split(text, ',');
  if (words.size() != 2) return std::nullopt;
  const auto first = real(words[0]), second = real(words[1]);
  if (!first || !second || *first < 0 || *second < 0) return std::nullopt;
  return MessageCost{*first, *second};
}

// ---- the flags: each sets its member, or returns what is wrong, without the flag's name

std::string factor(double Arguments::*member, Arguments& arguments, const std::string& text) {
  const auto value = real(text);
  if (!value || *value <= 0) return "takes a number above 0, not '" + text + "'";
  arguments.*member = *value;
  return "";
}

std::string cost(std::optional<MessageCost> Arguments::*member, Arguments& arguments, const std::string& text) {
  arguments.*member = pair(text);
  return arguments.*member ? "" : "takes startup,per_byte in seconds, e.g. 1e-3,2e-9, not '" + text + "'";
}

std::string policies(Arguments& arguments, const std::string& text) {
  arguments.policies = trestle::split(text, ',');
  if (arguments.policies.empty()) return "names no policy";
  for (const std::string& name : arguments.policies) {
    const auto policy = parse_gradient_policy(name);
    if (!policy.ok()) return policy.error().message;
  }
  return "";
}

std::string liberties(Arguments& arguments, const std::string& text) {
  arguments.allow = 0;
  const std::vector<std::string> names = trestle::split(text, ',');
  if (names.empty()) return "names no liberty; there are stale and compression";
  for (const std::string& name : names) {
    if (name != "stale" && name != "compression")
      return unknown_name(name, "a liberty", {"stale", "compression"}).message;
    arguments.allow |= name == "stale" ? kLibertyStale : kLibertyCompress;
  }
  return "";
}

std::string compute(Arguments& arguments, const std::string& text) {
  arguments.compute = text;
  return pair(text) ? "" : "takes forward,backward in seconds, not '" + text + "'";
}

using Text = const std::string&;
constexpr Flag<Arguments> kFlags[] = {
    {"workload", 0, "NAME|FILE", "as of `trestle train`: a built-in network, or a JSON file (resnet50@dear)",
     [](Arguments& a, Text text) { return a.workload = text, std::string(text.empty() ? "names nothing" : ""); }},
    {"compute", 0, "FORWARD,BACKWARD", "seconds, for a network without a compute time", compute},
    {"compact", 0, nullptr, "join tensors without compute time to those before them",
     [](Arguments& a, Text) { return a.compact = true, std::string(); }},
    {"scale-bytes", 0, "F", "each tensor has F times its bytes (1)",
     [](Arguments& a, Text text) { return factor(&Arguments::scale_bytes, a, text); }},
    {"scale-time", 0, "F", "each compute time is F times as long (1)",
     [](Arguments& a, Text text) { return factor(&Arguments::scale_time, a, text); }},
    {"balance", 0, "X", "scale compute times until the all-reduce of all bytes takes X times the compute time",
     [](Arguments& a, Text text) { return factor(&Arguments::balance, a, text); }},
    {"memory", 0, "apart|together", "how the tensors lie; those that lie together need no copies (apart)",
     [](Arguments& a, Text text) { return set_either(a.apart, "apart", "together", text); }},
    {"policy", 0, "P,...", "as of `trestle train` (wfbp,threshold:25M,dear:tuned,split_optimal:shared,auto)", policies},
    {"allow", 0, "stale,compression", "policies may use gradients of earlier steps, and send only the largest elements",
     liberties},
    {"link", 0, "RAILS", "a communicator over these rails (TRESTLE_RAILS); once for each link, the fastest first",
     [](Arguments& a, Text text) { return a.links.push_back(text), std::string(text.empty() ? "names no rail" : ""); }},
    {"cost", 0, "A,B", "seconds and seconds per byte of an all-reduce; without it costs and times are measured",
     [](Arguments& a, Text text) { return cost(&Arguments::cost, a, text); }},
    {"cost-half", 0, "A,B", "the same of a reduce-scatter or an all-gather (half of --cost)",
     [](Arguments& a, Text text) { return cost(&Arguments::cost_half, a, text); }},
    {"steps", 0, "N", "timed steps of a policy per round (3)", set_whole<&Arguments::steps, 1>},
    {"warmup", 0, "N", "steps before them (1)", set_whole<&Arguments::warmup, 1>},
    {"rounds", 0, "N", "rounds; each runs all policies in turn (5)", set_whole<&Arguments::rounds, 1>},
    {"profile", 0, "N", "steps that measure the tensors' times (2)", set_whole<&Arguments::profile_steps, 1>},
    {"check", 0, "0|1", "1: compare every gradient after every step with a plain all-reduce, bit by bit (0)",
     set_switch<&Arguments::check>},
    {"spoil", 0, "N", "for tests: rank 0 alters a result of its Nth verified step, which must be found",
     set_whole<&Arguments::spoil, 1>},
    {"processes", 'P', "N", "local processes to start; 0: this process is one (0)",
     set_whole<&Arguments::processes, 0>},
    {"nthreads", 't', "N", "threads per process, each a rank (1)", set_whole<&Arguments::threads, 1>},
    {"bind", 0, "core|none", "-P: a core for each process, where there are enough (core)",
     [](Arguments& a, Text text) { return set_either(a.bind, "core", "none", text); }},
    {"timeout", 'T', "N", "seconds that a wait may take; 0: no limit but the library's (0)",
     set_whole<&Arguments::timeout_s, 0>},
    {"json", 0, nullptr, "print one JSON document instead of the table",
     [](Arguments& a, Text) { return a.json = true, std::string(); }},
    {"help", 'h', nullptr, "this text", [](Arguments& a, Text) { return a.help = true, std::string(); }},
};

std::string check_together(const Arguments& arguments) {
  if (arguments.balance > 0 && arguments.scale_time != 1)
    return "--balance chooses the compute times' scale, and so does --scale-time: give one of them";
  if (arguments.cost_half && !arguments.cost) return "--cost-half goes with --cost";
  if (arguments.spoil > 0 && !arguments.check) return "--spoil needs --check 1, which has to find it";
  return "";
}

}  // namespace

ParsedTrainStep parse_train_step(int argc, char* const* argv) {
  ParsedTrainStep parsed;
  parsed.error = read_flags<Arguments>(argc, argv, kFlags, parsed.arguments);
  if (parsed.error.empty()) parsed.error = check_together(parsed.arguments);
  return parsed;
}

std::string train_step_usage(const std::string& program) {
  std::string text = "Usage: " + program + " [flags]\n";
  for (const Flag<Arguments>& flag : kFlags) text += usage_line({flag.letter, flag.name, flag.value}, flag.help);
  return text +
         "Every rank replays a workload's training step under each policy: compute is sleeping until absolute times,\n"
         "gradients travel for real. Ranks = processes x threads. Processes come from -P, or from a launcher.\n";
}

}  // namespace trestle::perf
