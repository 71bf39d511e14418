#include "perf/driver/options.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "perf/driver/flags.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

using Text = const std::string&;

template <auto kMember>
std::string set_size(Options& options, Text text) {
  const auto bytes = parse_bytes(text);
  if (!bytes.ok()) return ": " + bytes.error().message;
  if (bytes.value() < 1) return "must be at least 1 byte";
  options.*kMember = static_cast<size_t>(bytes.value());
  return "";
}

std::string set_json(Options& options, Text text) {
  std::string suffix = text.substr(text.size() - std::min<size_t>(text.size(), 5));
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (suffix != ".json" || text.size() == suffix.size())
    return "takes a file name that ends with .json, not '" + text + "'";
  options.json_path = text;
  return "";
}

std::string set_root(Options& options, Text text) {
  const std::string wrong = set_whole<&Options::root, -1>(options, text == "all" ? "-1" : text);
  return wrong.empty() ? "" : "takes a rank, -1 or all, not '" + text + "'";
}

// What `text` names of what `known` names in the order of its numbers: one, or all.
template <class Enum>
std::string set_named(std::vector<Enum>& chosen, const char* what, std::vector<std::string_view> known, Text text) {
  known.emplace_back("all");
  const auto found = std::ranges::find(known, text);
  if (found == known.end()) return ": " + unknown_name(text, what, known).message;
  chosen.clear();
  for (size_t i = 0; i + 1 < known.size(); ++i) {
    if (text == "all" || text == known[i]) chosen.push_back(static_cast<Enum>(i));
  }
  return "";
}

std::string set_predict(Options& options, Text text) {
  options.predict_bytes.clear();
  for (const std::string& item : split(text, ',')) {
    const auto bytes = parse_bytes(item);
    if (!bytes.ok() || bytes.value() == 0) break;
    options.predict_bytes.push_back(static_cast<size_t>(bytes.value()));
  }
  if (!options.predict_bytes.empty() && options.predict_bytes.size() == split(text, ',').size()) return "";
  return "takes sizes separated by commas, e.g. 8K,1.5M,64M, not '" + text + "'";
}

std::string set_location(Options& options, Text text) {
  if (text != "auto" && text != "host" && text != "device") return "takes auto, host or device, not '" + text + "'";
  options.location = text == "auto" ? Location::kAuto : text == "host" ? Location::kHost : Location::kDevice;
  return "";
}

std::string set_backend(Options& options, Text text) {
  if (text != "trestle" && text != "nccl")
    return "takes nccl, which is then measured beside Trestle, or trestle alone, not '" + text + "'";
  options.compare_nccl = text == "nccl";
  return "";
}

// Flags that concern GPUs: accepted, so that command lines keep working, and answered with a sentence.
constexpr const char* kOfGpus = "accepted; of GPUs only";
std::string remark(Options& options, Text text, const char* sentence) {
  if (text != "0") options.remarks.push_back(sentence);
  return "";
}

constexpr Flag<Options> kFlags[] = {
    {"minbytes", 'b', "", "first size, e.g. 8, 64K, 1.5M (32M)", set_size<&Options::min_bytes>},
    {"maxbytes", 'e', "", "last size (32M)", set_size<&Options::max_bytes>},
    {"stepbytes", 'i', "", "bytes between sizes (1M)", set_size<&Options::step_bytes>},
    {"stepfactor", 'f', "", "multiply the size by this; <= 1: add -i instead (1)", set_whole<&Options::step_factor, 0>},
    {"op", 'o', "", nullptr, [](Options& o, Text text) { return set_named(o.ops, "an operator", op_names(), text); }},
    {"datatype", 'd', "", nullptr,
     [](Options& o, Text text) { return set_named(o.types, "a type", type_names(), text); }},
    {"root", 'r', "", "a rank, or all (0)", set_root},
    {"nthreads", 't', "", "threads per process (1)", set_whole<&Options::threads, 1, 4096>},
    {"ngpus", 'g', "", "ranks per thread, driven with groups (1)", set_whole<&Options::ranks_per_thread, 1, 4096>},
    {"processes", 'P', "", "local processes to start; 0: this process is one (0)",
     set_whole<&Options::processes, 0, 4096>},
    {"bind", 0, "core|none",
     "-P: core: a core per process, where there are enough; none: where this program may run (core)",
     [](Options& o, Text text) { return set_either(o.bind, "core", "none", text); }},
    {"parallel_init", 'p', "", "1: each thread initialises its own ranks (0)", set_switch<&Options::parallel_init>},
    {"iters", 'n', "", "timed iterations (20)", set_whole<&Options::iters, 1>},
    {"warmup_iters", 'w', "", "warm-up iterations per size, sizes doubling (1)", set_whole<&Options::warmup_iters, 0>},
    {"agg_iters", 'm', "", "operations per iteration, in one group (1)", set_whole<&Options::agg_iters, 1, 1 << 20>},
    {"run_cycles", 'N', "", "times to run all sizes; 0: forever (1)", set_whole<&Options::run_cycles, 0>},
    {"check", 'c', "", "verifications per half row; 0: none (1)", set_whole<&Options::checks, 0>},
    {"blocking", 'z', "",
     "after each iteration: 1 wait and barrier, 2 wait, 3 wait, and a barrier that is not timed (0: wait at the end)",
     set_whole<&Options::blocking, 0, 3>},
    {"timeout", 'T', "", "seconds that a wait may take; 0: no limit but the library's (0)",
     set_whole<&Options::timeout_s, 0>},
    {"average", 'a', "", "time over ranks: 0 rank 0, 1 mean, 2 min, 3 max (1)", set_whole<&Options::average, 0, 3>},
    {"local_register", 'R', "",
     "0 ordinary memory; memory that the host's other ranks can map: 1 by trestleCommRegister, 2 by trestleMemAlloc "
     "(0)",
     set_whole<&Options::local_register, 0, 2>},
    {"unalign", 'u', "", "shift both buffers by that many elements (0)", set_whole<&Options::unalign, 0, 1 << 20>},
    {"stream_null", 'y', "", "1: the communicator's own stream (0)", set_switch<&Options::null_stream>},
    {"cudagraph", 'G', "", "capture the iterations into a CUDA graph, and launch it that often; 0: no graph (0)",
     set_whole<&Options::graph_launches, 0>},
    {"report_cputime", 'C', "", "1: time of the calls instead of their completion (0)",
     set_switch<&Options::report_cpu_time>},
    {"report_timestamps", 'S', "", "1: local time after each row (0)", set_switch<&Options::report_timestamps>},
    {"per_iter_timing", 'I', "",
     "1: wait for each iteration, and four more columns: shortest, longest, p99, variation (0)",
     set_switch<&Options::per_iteration>},
    {"per_iter_skip", 'K', "", "first iterations that the statistics of -I leave out (0)",
     set_whole<&Options::skipped_iterations, 0>},
    {"rail_stats", 'X', "", "after the table, what each rail has carried to each peer: 1 of rank 0, 2 of all ranks (0)",
     set_whole<&Options::rail_stats, 0, 2>},
    {"output_file", 'J', "", "also write the results to this .json file; an existing one is kept: .0, .1, ... is added",
     set_json},
    {"predict", 0, "SIZES", "after the table: predicted beside measured time for these sizes, e.g. 8K,1M,64M",
     set_predict},
    {"backend", 0, "nccl", "each row also with NCCL, beside Trestle's", set_backend},
    {"nccl-library", 0, "PATH", "the library for that (libnccl.so.2, as the loader finds it)",
     [](Options& o, Text text) {
       return o.nccl_library = text, std::string(text.empty() ? "takes the file of a library" : "");
     }},
    {"location", 0, "auto|host|device",
     "of the buffers; auto: memory of GPUs with TRESTLE_DEVICE or NVIDIA's NCCL, else host memory (auto)",
     set_location},
    {"call-times", 0, "1",
     "three more columns: host time of a call, of one right behind another, and time from a call to its result",
     set_switch<&Options::call_times>},
    {"help", 'h', nullptr, "this text", [](Options& o, Text) { return o.help = true, std::string(); }},
    {"cta_policy", 'x', "", kOfGpus,
     [](Options& o, Text text) { return remark(o, text, "-x (CTA policy) does nothing here"); }},
    {"device_implementation", 'D', "", kOfGpus,
     [](Options& o, Text text) { return remark(o, text, "-D (device kernels) does nothing here"); }},
    {"device_cta_count", 'V', "", kOfGpus,
     [](Options& o, Text text) { return remark(o, text, "-V (CTAs of device kernels) does nothing here"); }},
    {"memory", 'M', "", kOfGpus,
     [](Options& o, Text text) { return remark(o, text, "-M (GPU memory report) does nothing here"); }},
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
  ParsedOptions parsed;
  parsed.error = read_flags<Options>(argc, argv, kFlags, parsed.options);
  if (parsed.error.empty()) parsed.error = check_together(parsed.options);
  return parsed;
}

std::string usage_text(const std::string& program) {
  std::string text = "Usage: " + program + " [flags]\n";
  for (const Flag<Options>& flag : kFlags) {
    const std::string help = flag.letter == 'o'   ? joined(op_names()) + " all (sum)"
                             : flag.letter == 'd' ? joined(type_names()) + " all (float)"
                                                  : flag.help;
    text += usage_line({flag.letter, flag.name, flag.value}, help);
  }
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
