// top_k_perf: how long this machine takes to select the largest elements of a float32 gradient, beside memcpy. One
// thread, no communication. The same buffers are used again and again, so sizes below a cache show that cache.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "compress/topk.h"
#include "kernels/reduce.h"
#include "kernels/sparse.h"
#include "kernels/sparse_loops.h"
#include "perf/driver/memory.h"
#include "perf/driver/options.h"
#include "perf/kernel/timing.h"
#include "perf/report/table.h"

using namespace trestle::perf;

namespace {

constexpr int kFine = 0, kWrong = 7, kArguments = 255;
constexpr double kRatios[] = {0.1, 0.01, 0.001};
constexpr size_t kBuffers = 5;  // a gradient, a sum, a copy; selections need about two more

// Magnitudes like those of gradients: many small ones. The same on all machines.
std::vector<float> gradient_of(size_t elements) {
  std::vector<float> gradient(elements);
  uint64_t state = 1;
  for (float& value : gradient) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<double>(state >> 40) / (1 << 24) - 0.5;
    }
    value = static_cast<float>(sum * sum * sum);
  }
  return gradient;
}

struct Timings {
  double memcpy_us = 0;
  double accumulate_us = 0, portable_accumulate_us = 0;  // the portable ones: without the sum of squares
  double count_us = 0, portable_count_us = 0;
};

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  // Whether all selections are right.
  bool row(size_t bytes) {
    const size_t elements = bytes / sizeof(float);
    const std::vector<float> gradient = gradient_of(elements);
    const Timings timings = loops(gradient);
    std::string line = format_number(timings.memcpy_us, 9) + "  " + format_number(timings.accumulate_us, 9) + "  " +
                       format_number(timings.portable_accumulate_us, 9) + "  " + format_number(timings.count_us, 9) +
                       "  " + format_number(timings.portable_count_us, 9);
    bool right = true;
    for (const double ratio : kRatios) {
      const size_t k = trestle::top_k_count(ratio, elements);
      right = right && is_right(gradient, trestle::top_k(gradient, k), k);
      line += "  " + format_number(timed(bytes, [&] { keep(trestle::top_k(gradient, k)); }), 9) + "  " +
              format_number(timed(bytes, [&] { keep(trestle::ms_top_k(gradient, k)); }), 9);
    }
    std::printf("%12zu  %12zu  %s\n", elements * sizeof(float), elements, line.c_str());
    std::fflush(stdout);
    return right;
  }

 private:
  template <class Call>
  double timed(size_t bytes, Call call) {
    return median_us(bytes, options_.iters, options_.warmup_iters, call);
  }

  // What is computed must not be optimised away.
  void keep(const trestle::SparseVector& sparse) { kept_ = kept_ + sparse.indices.size(); }

  Timings loops(const std::vector<float>& gradient) {
    const size_t elements = gradient.size();
    const size_t bytes = elements * sizeof(float);
    const trestle::kernels::SparseLoops& portable = trestle::kernels::portable_sparse_loops();
    std::vector<float> other(elements);
    void* (*volatile copy)(void*, const void*, size_t) = std::memcpy;
    Timings timings;
    timings.memcpy_us = timed(bytes, [&] { copy(other.data(), gradient.data(), bytes); });
    timings.accumulate_us =
        timed(bytes, [&] { kept_ = kept_ + trestle::accumulate(other.data(), gradient.data(), elements).nans; });
    timings.portable_accumulate_us =
        timed(bytes, [&] { kept_ = kept_ + portable.add(other.data(), gradient.data(), elements); });
    timings.count_us = timed(bytes, [&] { kept_ = kept_ + trestle::count_reaching(gradient.data(), elements, 0.1f); });
    timings.portable_count_us =
        timed(bytes, [&] { kept_ = kept_ + portable.count_reaching(gradient.data(), elements, 0.1f); });
    return timings;
  }

  // No element that was left out is larger than one that was taken.
  static bool is_right(const std::vector<float>& gradient, const trestle::SparseVector& sparse, size_t k) {
    if (sparse.indices.size() != k) return false;
    float least = k > 0 ? std::abs(sparse.values[0]) : 0;
    for (const float value : sparse.values) least = std::min(least, std::abs(value));
    size_t larger = 0;
    for (const float value : gradient) larger += std::abs(value) > least;
    return larger <= k;
  }

  const Options& options_;
  volatile size_t kept_ = 0;
};

void print_header(const std::string& program) {
  std::printf("# Selection test starting: %s, instruction set %s, microseconds\n#\n", program.c_str(),
              trestle::reduce_instruction_set());
  std::printf("# %10s  %12s  %9s  %20s  %20s", "size", "count", "memcpy", "add and square  ", "count  ");
  for (const double ratio : kRatios) std::printf("  %13s %-6g", "largest", ratio);
  std::printf("\n# %10s  %12s  %9s", "(B)", "(elements)", "");
  for (int i = 0; i < 2; ++i) std::printf("  %9s  %9s", "", i == 0 ? "plain add" : "plain");
  for (size_t i = 0; i < std::size(kRatios); ++i) std::printf("  %9s  %9s", "exact", "MSTopk");
  std::printf("\n");
}

const char* const kUsage =
    "Usage: top_k_perf [flags]\n"
    "  -b, -e, -i, -f                sizes of the gradient, as of the other perf binaries (32M to 32M)\n"
    "  -n, -w                        samples, of which the median is shown (20), and calls before (1)\n"
    "The other flags of the perf binaries are accepted and do nothing here.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "top_k_perf";
  const std::string program = path.substr(path.rfind('/') + 1);
  const ParsedOptions parsed = parse_options(argc, argv);
  const Options& options = parsed.options;
  if (options.help) {
    std::fputs(kUsage, stdout);
    return kFine;
  }
  if (!parsed.error.empty() || options.max_bytes > available_memory_bytes() / 10 * 7 / kBuffers) {
    std::printf("%s: %s\n", program.c_str(),
                parsed.error.empty() ? "-e: more than the memory allows" : parsed.error.c_str());
    return kArguments;
  }
  print_header(program);
  Run run(options);
  bool right = true;
  for (size_t bytes = options.min_bytes; bytes != 0; bytes = next_size(options, bytes)) right = run.row(bytes) && right;
  std::printf("# Selection test concluded: %s\n", right ? "all right" : "WRONG");
  return right ? kFine : kWrong;
}
