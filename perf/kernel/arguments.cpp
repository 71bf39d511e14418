#include "perf/kernel/arguments.h"

#include <algorithm>

#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

constexpr int kMostSources = 64;

// "2,4,8"; empty: it is no such list.
std::vector<int> parse_sources(const std::string& text) {
  std::vector<int> sources;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string item = text.substr(from, comma - from);
    const bool digits = !item.empty() && item.size() <= 3 && item.find_first_not_of("0123456789") == std::string::npos;
    const int number = digits ? std::stoi(item) : 0;
    if (number < 1 || number > kMostSources) return {};
    sources.push_back(number);
    from = comma + 1;
  }
  return sources;
}

// Flags of the other perf binaries that one thread's kernels have no use for.
struct Useless {
  bool (*given)(const Options&);
  const char* remark;
};
constexpr Useless kUseless[] = {
    {[](const Options& o) { return o.agg_iters != 1; }, "-m (groups) does nothing here: kernels are called one by one"},
    {[](const Options& o) { return o.parallel_init; }, "-p (parallel init) does nothing here: there are no ranks"},
    {[](const Options& o) { return o.root != 0; }, "-r (root) does nothing here: there are no ranks"},
    {[](const Options& o) { return o.average != 1; }, "-a (time over ranks) does nothing here: there are no ranks"},
    {[](const Options& o) { return o.local_register != 0; },
     "-R (mapped memory) does nothing here: there are no ranks"},
    {[](const Options& o) { return o.graph_launches != 0; }, "-G (CUDA graphs) does nothing on host memory"},
    {[](const Options& o) { return o.null_stream; }, "-y (streams) does nothing here: a kernel's call ends with it"},
    {[](const Options& o) { return o.blocking != 0; }, "-z (waiting) does nothing here: a kernel's call ends with it"},
    {[](const Options& o) { return o.timeout_s != 0; }, "-T (deadline) does nothing here: kernels do not wait"},
    {[](const Options& o) { return o.report_cpu_time; },
     "-C (time of the calls) does nothing here: a kernel's call ends with it"},
    {[](const Options& o) { return o.per_iteration || o.skipped_iterations != 0; },
     "-I and -K (single iterations) do nothing here: the median of -n samples is shown"},
    {[](const Options& o) { return o.compare_nccl; },
     "--backend does nothing here: the kernels are compared with memcpy"},
    {[](const Options& o) { return o.location != Location::kAuto; },
     "--location does nothing here: device_perf measures the kernels of GPUs"},
    {[](const Options& o) { return o.call_times; }, "--call-times does nothing here: a kernel's call ends with it"},
    {[](const Options& o) { return !o.predict_bytes.empty(); },
     "--predict does nothing here: the library predicts collectives"},
};

// Why kernels cannot do what these options ask for; "": they can.
std::string refusal(const Options& options) {
  if (options.ops.empty()) return "-o mulsum is about ranks; its kernels are those of prod and sum";
  if (options.threads > 1 || options.ranks_per_thread > 1 || options.processes > 0)
    return "-t, -g and -P are about ranks; kernels are measured in one thread";
  return "";
}

}  // namespace

KernelArguments parse_kernel_arguments(int argc, char** argv) {
  KernelArguments arguments;
  std::vector<char*> others;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool alone = word == "--sources" || word == "-k";
    if (!alone && !word.starts_with("--sources=")) {
      others.push_back(argv[i]);
      continue;
    }
    const std::string value = !alone ? word.substr(word.find('=') + 1) : i + 1 < argc ? argv[++i] : "";
    arguments.sources = parse_sources(value);
    if (arguments.sources.empty()) {
      arguments.error =
          "--sources takes numbers from 1 to " + std::to_string(kMostSources) + ", e.g. 2,4,8, not '" + value + "'";
      return arguments;
    }
  }
  others.push_back(nullptr);
  const ParsedOptions parsed = parse_options(static_cast<int>(others.size()) - 1, others.data());
  arguments.options = parsed.options;
  arguments.error = parsed.error;
  std::erase(arguments.options.ops, kMulSum);
  if (arguments.error.empty()) arguments.error = refusal(arguments.options);
  for (const Useless& flag : kUseless) {
    if (flag.given(arguments.options)) arguments.options.remarks.push_back(flag.remark);
  }
  return arguments;
}

std::string kernel_usage(const std::string& program) {
  return "Usage: " + program +
         " [flags]\n"
         "  -k, --sources LIST            numbers of sources, e.g. 2,4,8 (2)\n"
         "  -b, -e, -i, -f                sizes of one source, as of the other perf binaries (32M to 32M)\n"
         "  -d, --datatype                " +
         joined(type_names()) +
         " all (float)\n"
         "  -o, --op                      " +
         joined(op_names()) +
         " all (sum); no mulsum\n"
         "  -n, -w                        samples, of which the median is shown (20), and calls before (1)\n"
         "  -c, --check                   0: do not verify (1)\n"
         "  -u, --unalign                 shift all buffers by that many elements (0)\n"
         "  -N, --run_cycles              times to run all; 0: forever (1)\n"
         "  -S, --report_timestamps       1: local time after each row (0)\n"
         "  -J, --output_file             also write the results to this .json file\n"
         "The other flags of the perf binaries are accepted and answered with a sentence; -t, -g and -P are refused.\n"
         "Bandwidths are GB/s of all bytes that are read and written: sources + 1 times the size, of memcpy twice.\n";
}

}  // namespace trestle::perf
