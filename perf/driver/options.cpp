#include "perf/driver/options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "perf/driver/flags.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

constexpr int kPredictFlag = 1000;
constexpr int kBindFlag = 1001;
constexpr int kBackendFlag = 1002;
constexpr int kNcclFlag = 1003;
constexpr int kLocationFlag = 1004;
constexpr int kCallTimesFlag = 1005;

struct Flag {
  char letter;
  const char* name;
  int low, high;  // range of the number
  int Options::*field;
  const char* help;
};

// The flags whose value is one whole number.
constexpr Flag kNumbers[] = {
    {'t', "nthreads", 1, 4096, &Options::threads, "threads per process (1)"},
    {'g', "ngpus", 1, 4096, &Options::ranks_per_thread, "ranks per thread, driven with groups (1)"},
    {'P', "processes", 0, 4096, &Options::processes, "local processes to start; 0: this process is one (0)"},
    {'f', "stepfactor", 0, INT_MAX, &Options::step_factor, "multiply the size by this; <= 1: add -i instead (1)"},
    {'n', "iters", 1, INT_MAX, &Options::iters, "timed iterations (20)"},
    {'w', "warmup_iters", 0, INT_MAX, &Options::warmup_iters, "warm-up iterations per size, sizes doubling (1)"},
    {'m', "agg_iters", 1, 1 << 20, &Options::agg_iters, "operations per iteration, in one group (1)"},
    {'N', "run_cycles", 0, INT_MAX, &Options::run_cycles, "times to run all sizes; 0: forever (1)"},
    {'c', "check", 0, INT_MAX, &Options::checks, "verifications per half row; 0: none (1)"},
    {'z', "blocking", 0, 3, &Options::blocking,
     "after each iteration: 1 wait and barrier, 2 wait, 3 wait, and a barrier that is not timed (0: wait at the end)"},
    {'T', "timeout", 0, INT_MAX, &Options::timeout_s,
     "seconds that a wait may take; 0: no limit but the library's (0)"},
    {'a', "average", 0, 3, &Options::average, "time over ranks: 0 rank 0, 1 mean, 2 min, 3 max (1)"},
    {'R', "local_register", 0, 2, &Options::local_register,
     "0 ordinary memory; memory that the host's other ranks can map: 1 by trestleCommRegister, 2 by trestleMemAlloc "
     "(0)"},
    {'K', "per_iter_skip", 0, INT_MAX, &Options::skipped_iterations,
     "first iterations that the statistics of -I leave out (0)"},
    {'X', "rail_stats", 0, 2, &Options::rail_stats,
     "after the table, what each rail has carried to each peer: 1 of rank 0, 2 of all ranks (0)"},
    {'G', "cudagraph", 0, INT_MAX, &Options::graph_launches,
     "capture the iterations into a CUDA graph, and launch it that often; 0: no graph (0)"},
    {'u', "unalign", 0, 1 << 20, &Options::unalign, "shift both buffers by that many elements (0)"},
};

// Flags that concern GPUs: accepted, so that command lines keep working, and answered with a sentence.
struct DeviceFlag {
  char letter;
  const char* name;
  const char* remark;
};
constexpr DeviceFlag kDeviceFlags[] = {
    {'x', "cta_policy", "-x (CTA policy) does nothing here"},
    {'D', "device_implementation", "-D (device kernels) does nothing here"},
    {'V', "device_cta_count", "-V (CTAs of device kernels) does nothing here"},
    {'M', "memory", "-M (GPU memory report) does nothing here"},
};

struct LetterName {
  char letter;
  const char* name;
  const char* help;
};
constexpr LetterName kOthers[] = {
    {'b', "minbytes", "first size, e.g. 8, 64K, 1.5M (32M)"},
    {'e', "maxbytes", "last size (32M)"},
    {'i', "stepbytes", "bytes between sizes (1M)"},
    {'p', "parallel_init", "1: each thread initialises its own ranks (0)"},
    {'o', "op", ""},
    {'d', "datatype", ""},
    {'r', "root", "a rank, or all (0)"},
    {'y', "stream_null", "1: the communicator's own stream (0)"},
    {'C', "report_cputime", "1: time of the calls instead of their completion (0)"},
    {'S', "report_timestamps", "1: local time after each row (0)"},
    {'I', "per_iter_timing",
     "1: wait for each iteration, and four more columns: shortest, longest, p99, variation (0)"},
    {'J', "output_file", "also write the results to this .json file; an existing one is kept: .0, .1, ... is added"},
};

std::optional<long long> parse_whole(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return value;
}

std::string flag_text(int letter) {
  return std::string("-") + static_cast<char>(letter);
}

std::string set_number(Options& options, const Flag& flag, const std::string& text) {
  const auto value = parse_whole(text);
  if (!value || *value < flag.low || *value > flag.high) {
    std::string range = flag.high == INT_MAX
                            ? "a whole number from " + std::to_string(flag.low) + " up"
                            : "a whole number " + std::to_string(flag.low) + " to " + std::to_string(flag.high);
    return flag_text(flag.letter) + " takes " + range + ", not '" + text + "'";
  }
  options.*flag.field = static_cast<int>(*value);
  return "";
}

std::string set_switch(bool& field, int letter, const std::string& text) {
  if (text != "0" && text != "1") return flag_text(letter) + " takes 0 or 1, not '" + text + "'";
  field = text == "1";
  return "";
}

std::string set_size(size_t& field, int letter, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes.ok()) return flag_text(letter) + ": " + bytes.error().message;
  if (bytes.value() < 1) return flag_text(letter) + " must be at least 1 byte";
  field = static_cast<size_t>(bytes.value());
  return "";
}

std::string set_json(Options& options, const std::string& text) {
  std::string suffix = text.substr(text.size() - std::min<size_t>(text.size(), 5));
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (suffix != ".json" || text.size() == suffix.size())
    return "-J takes a file name that ends with .json, not '" + text + "'";
  options.json_path = text;
  return "";
}

std::string set_root(Options& options, const std::string& text) {
  const auto value = text == "all" ? std::optional<long long>(-1) : parse_whole(text);
  if (!value || *value < -1 || *value > INT_MAX) return "-r takes a rank, -1 or all, not '" + text + "'";
  options.root = static_cast<int>(*value);
  return "";
}

// What `text` names of what `known` names in the order of its numbers: one, or all.
template <class Enum>
std::string set_named(std::vector<Enum>& chosen, int letter, const char* what, std::vector<std::string_view> known,
                      const std::string& text) {
  known.emplace_back("all");
  const auto found = std::ranges::find(known, text);
  if (found == known.end()) return flag_text(letter) + ": " + unknown_name(text, what, known).message;
  chosen.clear();
  for (size_t i = 0; i + 1 < known.size(); ++i) {
    if (text == "all" || text == known[i]) chosen.push_back(static_cast<Enum>(i));
  }
  return "";
}

std::string set_predict(Options& options, const std::string& text) {
  options.predict_bytes.clear();
  for (const std::string& item : split(text, ',')) {
    const auto bytes = parse_bytes(item);
    if (!bytes.ok() || bytes.value() == 0) break;
    options.predict_bytes.push_back(static_cast<size_t>(bytes.value()));
  }
  if (!options.predict_bytes.empty() && options.predict_bytes.size() == split(text, ',').size()) return "";
  return "--predict takes sizes separated by commas, e.g. 8K,1.5M,64M, not '" + text + "'";
}

std::string set_backend(Options& options, const std::string& text) {
  if (text != "trestle" && text != "nccl") {
    return "--backend takes nccl, which is then measured beside Trestle, or trestle alone, not '" + text + "'";
  }
  options.compare_nccl = text == "nccl";
  return "";
}

std::string set_location(Options& options, const std::string& text) {
  if (text != "auto" && text != "host" && text != "device") {
    return "--location takes auto, host or device, not '" + text + "'";
  }
  options.location = text == "auto" ? Location::kAuto : text == "host" ? Location::kHost : Location::kDevice;
  return "";
}

std::string set_bind(Options& options, const std::string& text) {
  if (text != "core" && text != "none") return "--bind takes core or none, not '" + text + "'";
  options.bind = text == "core";
  return "";
}

std::string apply_long(Options& options, int flag, const std::string& text) {
  switch (flag) {
    case kPredictFlag:
      return set_predict(options, text);
    case kBindFlag:
      return set_bind(options, text);
    case kBackendFlag:
      return set_backend(options, text);
    case kNcclFlag:
      options.nccl_library = text;
      return text.empty() ? "--nccl-library takes the file of a library" : "";
    case kLocationFlag:
      return set_location(options, text);
    case kCallTimesFlag:
      if (text != "0" && text != "1") return "--call-times takes 0 or 1, not '" + text + "'";
      options.call_times = text == "1";
      return "";
    default:
      options.help = true;
      return "";
  }
}

// Returns the error as a sentence, or "".
std::string apply(Options& options, int letter, const std::string& text) {
  for (const Flag& flag : kNumbers) {
    if (flag.letter == letter) return set_number(options, flag, text);
  }
  for (const DeviceFlag& flag : kDeviceFlags) {
    if (flag.letter != letter) continue;
    if (text != "0") options.remarks.push_back(flag.remark);
    return "";
  }
  switch (letter) {
    case 'b':
      return set_size(options.min_bytes, letter, text);
    case 'e':
      return set_size(options.max_bytes, letter, text);
    case 'i':
      return set_size(options.step_bytes, letter, text);
    case 'p':
      return set_switch(options.parallel_init, letter, text);
    case 'o':
      return set_named(options.ops, letter, "an operator", op_names(), text);
    case 'd':
      return set_named(options.types, letter, "a type", type_names(), text);
    case 'r':
      return set_root(options, text);
    case 'y':
      return set_switch(options.null_stream, letter, text);
    case 'C':
      return set_switch(options.report_cpu_time, letter, text);
    case 'S':
      return set_switch(options.report_timestamps, letter, text);
    case 'I':
      return set_switch(options.per_iteration, letter, text);
    case 'J':
      return set_json(options, text);
    default:
      return apply_long(options, letter, text);
  }
}

struct GetoptTables {
  std::string letters = ":h";  // distinguishes a missing argument from an unknown flag
  std::vector<option> names = {{"help", no_argument, nullptr, 'h'},
                               {"predict", required_argument, nullptr, kPredictFlag},
                               {"bind", required_argument, nullptr, kBindFlag},
                               {"backend", required_argument, nullptr, kBackendFlag},
                               {"nccl-library", required_argument, nullptr, kNcclFlag},
                               {"location", required_argument, nullptr, kLocationFlag},
                               {"call-times", required_argument, nullptr, kCallTimesFlag}};

  GetoptTables() {
    for (const Flag& flag : kNumbers) add(flag.letter, flag.name);
    for (const DeviceFlag& flag : kDeviceFlags) add(flag.letter, flag.name);
    for (const LetterName& flag : kOthers) add(flag.letter, flag.name);
    names.push_back({nullptr, 0, nullptr, 0});
  }
  void add(char letter, const char* name) {
    letters += letter;
    letters += ':';
    names.push_back({name, required_argument, nullptr, letter});
  }
};

std::string check_together(const Options& options) {
  if (options.min_bytes > options.max_bytes) {
    return "-b (" + std::to_string(options.min_bytes) + " bytes) is more than -e (" +
           std::to_string(options.max_bytes) + " bytes)";
  }
  if (options.per_iteration && options.skipped_iterations >= options.iters) {
    return "-K leaves out " + std::to_string(options.skipped_iterations) +
           " iterations, and -n says that there are only " + std::to_string(options.iters);
  }
  const bool by_iteration = options.per_iteration || options.blocking != 0 || options.call_times;
  if (options.graph_launches != 0 && (by_iteration || options.null_stream))
    return "-G measures launches of what was captured on streams of its own: not with -I, -z, -y or --call-times";
  if (!options.nccl_library.empty() && !options.compare_nccl) return "--nccl-library is for --backend nccl";
  return "";
}

}  // namespace

size_t next_size(const Options& options, size_t bytes) {
  const size_t factor = options.step_factor > 1 ? static_cast<size_t>(options.step_factor) : 1;
  if (bytes > options.max_bytes / factor) return 0;
  const size_t next = factor > 1 ? bytes * factor : bytes + options.step_bytes;
  return next > options.max_bytes ? 0 : next;
}

uint64_t size_count(const Options& options) {
  uint64_t sizes = 0;
  for (size_t bytes = options.min_bytes; bytes != 0; bytes = next_size(options, bytes)) ++sizes;
  return sizes;
}

ParsedOptions parse_options(int argc, char* const* argv) {
  const GetoptTables tables;
  ParsedOptions parsed;
  const auto set = [&parsed](int letter, const std::string& value) { return apply(parsed.options, letter, value); };
  const auto unknown = [](int letter, const std::string& word) {
    return letter != 0 ? flag_text(letter) : "'" + word + "'";
  };
  parsed.error = read_flags(argc, argv, {tables.letters.c_str(), tables.names.data(), set, unknown});
  if (parsed.error.empty()) parsed.error = check_together(parsed.options);
  return parsed;
}

std::vector<FlagName> flag_names() {
  std::vector<FlagName> flags;
  for (const option& flag : GetoptTables().names) {
    if (flag.name != nullptr)
      flags.push_back({flag.val < kPredictFlag ? static_cast<char>(flag.val) : '\0', flag.name});
  }
  return flags;
}

std::string usage_text(const std::string& program) {
  std::string text = "Usage: " + program + " [flags]\n";
  const auto line = [&text](const std::string& flag, const std::string& help) {
    text += "  " + flag + std::string(flag.size() < 30 ? 30 - flag.size() : 1, ' ') + help + "\n";
  };
  const auto letter_line = [&](char letter, const char* name, const std::string& help) {
    line(flag_text(letter) + ", --" + name, help);
  };
  for (const LetterName& flag : kOthers) {
    const std::string help = flag.letter == 'o'   ? joined(op_names()) + " all (sum)"
                             : flag.letter == 'd' ? joined(type_names()) + " all (float)"
                                                  : flag.help;
    letter_line(flag.letter, flag.name, help);
  }
  for (const Flag& flag : kNumbers) letter_line(flag.letter, flag.name, flag.help);
  line("--predict SIZES", "after the table: predicted beside measured time for these sizes, e.g. 8K,1M,64M");
  line("--bind core|none",
       "-P: core: a core per process, where there are enough; none: where this program may run (core)");
  line("--backend nccl", "each row also with NCCL, beside Trestle's");
  line("--nccl-library PATH", "the library for that (libnccl.so.2, as the loader finds it)");
  line("--location auto|host|device",
       "of the buffers; auto: memory of GPUs with TRESTLE_DEVICE or NVIDIA's NCCL, else host memory (auto)");
  line("--call-times 1",
       "three more columns: host time of a call, of one right behind another, and time from a call to its result");
  line("-h, --help", "this text");
  for (const DeviceFlag& flag : kDeviceFlags) letter_line(flag.letter, flag.name, "accepted; of GPUs only");
  text +=
      "Ranks = processes x threads x ranks per thread. Processes come from -P, or from a launcher (trestle run, "
      "torchrun,\n";
  text +=
      "mpirun, srun). TRESTLE_TESTS_MIN_BW: exit with 7 if the mean bus bandwidth is below 0.9 of this many GB/s.\n";
  text +=
      "TRESTLE_TESTS_SPLIT='MOD 8' (or AND, OR, DIV): processes of one colour, process MOD 8, measure as a group of "
      "their "
      "own.\n";
  return text;
}

}  // namespace trestle::perf
