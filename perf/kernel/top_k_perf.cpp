// top_k_perf: how long this machine takes to select the largest elements of a gradient, beside memcpy. One thread, no
// communication. The same buffers are used again and again, so sizes below a cache show that cache.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "compress/topk.h"
#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "kernels/sparse.h"
#include "kernels/sparse_loops.h"
#include "perf/driver/flags.h"
#include "perf/driver/memory.h"
#include "perf/driver/options.h"
#include "perf/kernel/timing.h"
#include "perf/report/table.h"

using namespace trestle::perf;

namespace {

constexpr int kFine = 0, kWrong = 7, kArguments = 255;
constexpr double kRatios[] = {0.1, 0.01, 0.001};
constexpr size_t kBuffers = 7;  // a gradient in three forms, a sum, a copy; selections need about two more

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

// The gradient's bytes as elements of this type. Elements of 16 bits are added to a float32 sum, and selected from it.
std::vector<std::byte> stored_as(trestle::DataType type, const std::vector<float>& gradient) {
  std::vector<std::byte> bytes(gradient.size() * trestle::size_of(type));
  if (type == trestle::DataType::kFloat64) {
    const std::vector<double> doubles(gradient.begin(), gradient.end());
    if (!bytes.empty()) std::memcpy(bytes.data(), doubles.data(), bytes.size());
  } else {
    trestle::narrow_from_float32(bytes.data(), gradient.data(), gradient.size(), type);
  }
  return bytes;
}

class Run {
 public:
  Run(const Options& options, trestle::DataType type) : options_(options), type_(type) {}

  // Whether all selections are right.
  bool row(size_t bytes) { return type_ == trestle::DataType::kFloat64 ? row_of<double>(bytes) : row_of<float>(bytes); }

 private:
  template <class T>
  bool row_of(size_t bytes) {
    const size_t elements = bytes / trestle::size_of(type_);
    const std::vector<float> values = gradient_of(elements);
    const std::vector<std::byte> stored = stored_as(type_, values);
    std::vector<T> gradient(elements);  // of the sums' type
    add(gradient.data(), stored.data(), elements);
    const Timings timings = loops(gradient, stored);
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
    std::printf("%12zu  %12zu  %s\n", stored.size(), elements, line.c_str());
    std::fflush(stdout);
    return right;
  }

  template <class Call>
  double timed(size_t bytes, Call call) {
    return median_us(bytes, options_.iters, options_.warmup_iters, call);
  }

  // Uses the result, so that the computation is not optimised away.
  template <class T>
  void keep(const trestle::SparseVectorOf<T>& sparse) {
    kept_ = kept_ + sparse.indices.size();
  }

  // Return the number of NaNs.
  size_t add(double* sums, const std::byte* values, size_t elements) const {
    return trestle::accumulate(sums, values, elements).nans;
  }
  size_t add(float* sums, const std::byte* values, size_t elements) const {
    if (type_ != trestle::DataType::kFloat32) return trestle::accumulate_widened(sums, values, elements, type_).nans;
    return trestle::accumulate(sums, values, elements).nans;
  }
  size_t add_portably(double* sums, const std::byte* values, size_t elements) const {
    return portable_.of_doubles.add(sums, values, elements);
  }
  size_t add_portably(float* sums, const std::byte* values, size_t elements) const {
    if (type_ == trestle::DataType::kFloat16) return portable_.add_float16(sums, values, elements);
    if (type_ == trestle::DataType::kBfloat16) return portable_.add_bfloat16(sums, values, elements);
    return portable_.add(sums, values, elements);
  }
  template <class T>
  size_t count_portably(const std::vector<T>& gradient, T threshold) const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return portable_.of_doubles.count_reaching(gradient.data(), gradient.size(), threshold);
    } else {
      return portable_.count_reaching(gradient.data(), gradient.size(), threshold);
    }
  }

  template <class T>
  Timings loops(const std::vector<T>& gradient, const std::vector<std::byte>& stored) {
    constexpr T kThreshold{0.1f};
    const size_t elements = gradient.size();
    const size_t bytes = stored.size();
    std::vector<std::byte> copied(bytes);
    std::vector<T> sums(elements);
    void* (*volatile copy)(void*, const void*, size_t) = std::memcpy;
    Timings timings;
    timings.memcpy_us = timed(bytes, [&] { copy(copied.data(), stored.data(), bytes); });
    timings.accumulate_us = timed(bytes, [&] { kept_ = kept_ + add(sums.data(), stored.data(), elements); });
    timings.portable_accumulate_us =
        timed(bytes, [&] { kept_ = kept_ + add_portably(sums.data(), stored.data(), elements); });
    timings.count_us =
        timed(bytes, [&] { kept_ = kept_ + trestle::count_reaching(gradient.data(), elements, kThreshold); });
    timings.portable_count_us = timed(bytes, [&] { kept_ = kept_ + count_portably(gradient, kThreshold); });
    return timings;
  }

  // No element that was left out is larger than one that was taken.
  template <class T>
  static bool is_right(const std::vector<T>& gradient, const trestle::SparseVectorOf<T>& sparse, size_t k) {
    if (sparse.indices.size() != k) return false;
    T least = k > 0 ? std::abs(sparse.values[0]) : 0;
    for (const T value : sparse.values) least = std::min(least, std::abs(value));
    size_t larger = 0;
    for (const T value : gradient) larger += std::abs(value) > least;
    return k == 0 || larger < k;  // the least one is not among them
  }

  const trestle::kernels::SparseLoops& portable_ = trestle::kernels::portable_sparse_loops();
  const Options& options_;
  const trestle::DataType type_;
  volatile size_t kept_ = 0;
};

void print_header(const std::string& program, trestle::DataType type) {
  std::printf("# Selection test starting: %s, %s, instruction set %s, microseconds\n#\n", program.c_str(),
              to_string(type), trestle::reduce_instruction_set());
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
    "  -d                            type of the gradient: float (default), half, bfloat16 or double. Those of 16 "
    "bits\n"
    "                                are added to a float32 sum, from which is selected\n"
    "  -n, -w                        samples, of which the median is shown (20), and calls before (1)\n"
    "The other flags of the perf binaries are accepted and do nothing here.\n";

// "": none.
std::string mistake_of(const ParsedOptions& parsed) {
  if (!parsed.error.empty()) return parsed.error;
  const std::vector<trestleDataType_t>& types = parsed.options.types;
  const bool known = types.size() == 1 && (types[0] == trestleFloat32 || types[0] == trestleFloat64 ||
                                           types[0] == trestleFloat16 || types[0] == trestleBfloat16);
  if (!known) return "-d: float, half, bfloat16 or double";
  const size_t widening = types[0] == trestleFloat16 || types[0] == trestleBfloat16 ? 2 : 1;
  if (parsed.options.max_bytes > available_memory_bytes() / 10 * 7 / kBuffers / widening)
    return "-e: more than the memory allows";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = program_name(argc, argv, "top_k_perf");
  const ParsedOptions parsed = parse_options(argc, argv);
  const Options& options = parsed.options;
  if (options.help) {
    std::fputs(kUsage, stdout);
    return kFine;
  }
  if (const std::string wrong = mistake_of(parsed); !wrong.empty()) {
    std::printf("%s: %s\n", program.c_str(), wrong.c_str());
    return kArguments;
  }
  const auto type = static_cast<trestle::DataType>(options.types[0]);
  print_header(program, type);
  Run run(options, type);
  bool right = true;
  for (size_t bytes = options.min_bytes; bytes != 0; bytes = next_size(options, bytes)) right = run.row(bytes) && right;
  std::printf("# Selection test concluded: %s\n", right ? "all right" : "WRONG");
  return right ? kFine : kWrong;
}
