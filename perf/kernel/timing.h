// Timing one reduction kernel beside memcpy, and verifying it.
//
// Owns its buffers; one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace trestle::perf {

// Median microseconds of one call, over `samples` timed stretches after `warmup` calls. bytes: about what a call reads.
template <class Call>
double median_us(size_t bytes, int samples, int warmup, Call call) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kStretchBytes = 256 << 10;  // calls on less data are timed several at once
  const size_t calls = std::max<size_t>(1, kStretchBytes / std::max<size_t>(bytes, 64));
  for (int i = 0; i < warmup; ++i) call();
  std::vector<double> times;
  for (int sample = 0; sample < samples; ++sample) {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < calls; ++i) call();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                    static_cast<double>(calls));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// GB/s, decimal.
inline double gigabytes_per_second(double bytes, double time_us) {
  return time_us > 0 ? bytes / time_us / 1e3 : 0;
}

struct KernelCase {
  DataType type;
  ReduceOp op;
  int sources;
  size_t elements;
};

// With one kind of stores.
struct KernelTiming {
  double time_us = 0;
  double bandwidth = 0;  // GB/s (decimal) of all bytes that are read and written
  std::optional<uint64_t> wrong;
};

class KernelBench {
 public:
  // Buffers for a result and `sources` sources of `bytes` bytes. Data begin `unalign_bytes` after a page boundary.
  KernelBench(int sources, size_t bytes, size_t unalign_bytes);

  // Data for the case; before run() and whenever the case changes.
  void prepare(const KernelCase& what);
  // The median of `samples` timed stretches, each long enough to be timed; `warmup` calls before. verify: compare the
  // result bit by bit (averages of floats: to 2 units in the last place).
  KernelTiming run(const KernelCase& what, bool streaming, int samples, int warmup, bool verify);
  // GB/s of memcpy of so many bytes, read and written, timed in the same way.
  double memcpy_bandwidth(size_t bytes, int samples, int warmup);

 private:
  std::byte* buffer(size_t index);

  const size_t stride_;
  const size_t unalign_bytes_;
  std::vector<std::byte> memory_;  // the result, then the sources
};

}  // namespace trestle::perf
