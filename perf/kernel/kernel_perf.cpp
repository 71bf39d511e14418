// kernel_perf: how fast the reduction kernels of this machine are, per type, operator and number of sources, beside
// memcpy. One thread, no communication. Bandwidths count every byte that is read and written; the same buffers are used
// again and again, so sizes below a cache show that cache.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "kernels/reduce.h"
#include "perf/driver/flags.h"
#include "perf/driver/memory.h"
#include "perf/driver/options.h"
#include "perf/driver/types.h"
#include "perf/kernel/arguments.h"
#include "perf/kernel/timing.h"
#include "perf/report/json.h"
#include "perf/report/json_file.h"
#include "perf/report/progress.h"
#include "perf/report/table.h"

using namespace trestle::perf;

namespace {

constexpr int kFine = 0, kWrong = 7, kArguments = 255;

std::string half_text(const KernelTiming& timing, double memcpy_bandwidth) {
  std::string text = "  " + format_number(timing.time_us, 7) + "  " + format_number(timing.bandwidth, 6) + "  " +
                     format_number(memcpy_bandwidth > 0 ? timing.bandwidth / memcpy_bandwidth : 0, 6);
  char wrong[24] = "   N/A";
  if (timing.wrong) std::snprintf(wrong, sizeof wrong, "%6g", static_cast<double>(*timing.wrong));
  return text + "  " + wrong;
}

void half_json(Json& json, const char* key, const KernelTiming& timing, double memcpy_bandwidth) {
  json.key(key).open('{').key("time").number(timing.time_us).key("bandwidth").number(timing.bandwidth);
  json.key("of_memcpy").number(timing.bandwidth / memcpy_bandwidth);
  json.key("nwrong").integer(timing.wrong).close('}');
}

constexpr const char* kNoEnd = "],\"out_of_bounds\":null,\"errors\":[\"the run has not ended\"]}\n";

class Run {
 public:
  // file: not open where there is no report to be written.
  Run(const KernelArguments& arguments, int most_sources, JsonFile& file)
      : arguments_(arguments),
        options_(arguments.options),
        bench_(most_sources, options_.max_bytes, static_cast<size_t>(options_.unalign) * 8),
        file_(file),
        progress_(stderr, row_count()) {
    Json json;
    json.open('{').key("version").integer(1).key("instruction_set").text(trestle::reduce_instruction_set());
    report(json.key("results").open('[').str(), kNoEnd);
  }

  void all() {
    for (const trestleDataType_t type : options_.types) {
      for (const trestleRedOp_t op : options_.ops) {
        for (const int sources : arguments_.sources) {
          for (size_t bytes = options_.min_bytes; bytes != 0; bytes = next_size(options_, bytes))
            row(type, op, sources, bytes);
        }
      }
    }
  }

  uint64_t wrong_rows() const { return wrong_rows_; }
  // "", or why the report could not be written.
  std::string finish() {
    Json json;
    json.open('{').key("count").integer(wrong_rows_).key("okay").truth(wrong_rows_ == 0).close('}');
    report("", "],\"out_of_bounds\":" + json.str() + ",\"errors\":[]}\n");
    return problem_;
  }

 private:
  uint64_t row_count() const {
    return size_count(options_) * options_.types.size() * options_.ops.size() * arguments_.sources.size() *
           static_cast<uint64_t>(options_.run_cycles);
  }

  // After the first problem nothing more is written.
  void report(const std::string& text, const std::string& tail) {
    if (file_.is_open() && problem_.empty()) problem_ = file_.append(text, tail);
  }

  void row(trestleDataType_t type, trestleRedOp_t op, int sources, size_t bytes) {
    const TypeInfo& info = type_info(type);
    const KernelCase what = {static_cast<trestle::DataType>(type), static_cast<trestle::ReduceOp>(op), sources,
                             bytes / info.bytes};
    const size_t size = what.elements * info.bytes;
    const uint64_t calls = static_cast<uint64_t>(options_.iters) + static_cast<uint64_t>(options_.warmup_iters);
    progress_.begin_stage("data", size, 0);
    bench_.prepare(what);
    progress_.begin_stage("memcpy", size, calls);
    const double copied = bench_.memcpy_bandwidth(size, options_.iters, options_.warmup_iters);
    progress_.begin_stage("normal stores", size, calls);
    const KernelTiming normal = bench_.run(what, false, options_.iters, options_.warmup_iters, options_.checks > 0);
    progress_.begin_stage("streaming stores", size, calls);
    const KernelTiming streaming = bench_.run(what, true, options_.iters, options_.warmup_iters, options_.checks > 0);
    for (const KernelTiming* timing : {&normal, &streaming}) wrong_rows_ += timing->wrong.value_or(0) > 0 ? 1 : 0;
    progress_.end_row();
    std::printf("%12zu  %12zu  %8s  %6s  %7d  %6s%s%s%s\n", size, what.elements, info.name, op_name(op), sources,
                format_number(copied, 6).c_str(), half_text(normal, copied).c_str(),
                half_text(streaming, copied).c_str(), (options_.report_timestamps ? row_timestamp() : "").c_str());
    std::fflush(stdout);
    Json json;
    json.open('{').key("size").integer(size);
    json.key("count").integer(what.elements).key("type").text(info.name);
    json.key("redop").text(op_name(op)).key("sources").integer(sources).key("memcpy_bandwidth").number(copied);
    half_json(json, "normal_stores", normal, copied);
    half_json(json, "streaming_stores", streaming, copied);
    report((rows_++ == 0 ? "\n" : ",\n") + json.close('}').str(), kNoEnd);
  }

  const KernelArguments& arguments_;
  const Options& options_;
  KernelBench bench_;
  JsonFile& file_;
  Progress progress_;
  std::string problem_;
  uint64_t rows_ = 0;
  uint64_t wrong_rows_ = 0;
};

void print_header(const std::string& program, const Options& options) {
  std::printf("# Kernel test starting: %s, instruction set %s\n", program.c_str(), trestle::reduce_instruction_set());
  for (const std::string& remark : options.remarks) std::printf("# %s\n", remark.c_str());
  std::printf("#\n");
  std::printf("# %10s  %12s  %8s  %6s  %7s  %6s  %31s  %31s\n", "", "", "", "", "", "", "normal stores  ",
              "streaming stores  ");
  std::printf("# %10s  %12s  %8s  %6s  %7s  %6s", "size", "count", "type", "redop", "sources", "memcpy");
  for (int half = 0; half < 2; ++half) std::printf("  %7s  %6s  %6s  %6s", "time", "bw", "ratio", "#wrong");
  if (options.report_timestamps) std::printf("%21s", "timestamp");
  std::printf("\n# %10s  %12s  %8s  %6s  %7s  %6s", "(B)", "(elements)", "", "", "", "(GB/s)");
  for (int half = 0; half < 2; ++half) std::printf("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "", "");
  std::printf("\n");
}

int refuse(const std::string& program, const std::string& sentence) {
  std::printf("%s: %s\n", program.c_str(), sentence.c_str());
  return kArguments;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = program_name(argc, argv, "kernel_perf");
  const KernelArguments arguments = parse_kernel_arguments(argc, argv);
  const Options& options = arguments.options;
  if (!arguments.error.empty()) return refuse(program, arguments.error);
  if (options.help) {
    std::fputs(kernel_usage(program).c_str(), stdout);
    return kFine;
  }
  int most_sources = 1;
  for (const int sources : arguments.sources) most_sources = std::max(most_sources, sources);
  if (options.max_bytes > available_memory_bytes() / 10 * 7 / (static_cast<size_t>(most_sources) + 2)) {
    return refuse(program, "-e: " + std::to_string(most_sources + 2) + " buffers of " +
                               std::to_string(options.max_bytes) + " bytes are more than the memory allows");
  }
  JsonFile file;
  const std::string problem = options.json_path.empty() ? "" : file.create(options.json_path);
  if (!problem.empty()) return refuse(program, problem);
  print_header(program, options);
  Run run(arguments, most_sources, file);
  for (int cycle = 0; options.run_cycles == 0 || cycle < options.run_cycles; ++cycle) run.all();
  std::printf("%s\n#\n# Kernel test concluded: %s\n", wrong_line(run.wrong_rows()).c_str(), program.c_str());
  const std::string unwritten = run.finish();
  if (!unwritten.empty()) return refuse(program, unwritten);
  return run.wrong_rows() > 0 ? kWrong : kFine;
}
