#include "perf/kernel/timing.h"

#include <cstring>
#include <span>

#include "kernels/reduce.h"
#include "perf/driver/pattern.h"

namespace trestle::perf {
namespace {

constexpr size_t kPage = 4096;

Reduction pattern_of(const KernelCase& what) {
  return {static_cast<trestleDataType_t>(what.type), static_cast<trestleRedOp_t>(what.op), what.sources, 1};
}

}  // namespace

KernelBench::KernelBench(int sources, size_t bytes, size_t unalign_bytes)
    : stride_((bytes + unalign_bytes + 2 * kPage) / kPage * kPage),
      unalign_bytes_(unalign_bytes),
      memory_(stride_ * (static_cast<size_t>(sources) + 1) + kPage) {}

std::byte* KernelBench::buffer(size_t index) {
  const size_t to_page = (kPage - reinterpret_cast<uintptr_t>(memory_.data()) % kPage) % kPage;
  return memory_.data() + to_page + index * stride_ + unalign_bytes_;
}

void KernelBench::prepare(const KernelCase& what) {
  for (int source = 0; source < what.sources; ++source) {
    fill_contribution(pattern_of(what), source, 0, what.elements, buffer(static_cast<size_t>(source) + 1));
  }
}

KernelTiming KernelBench::run(const KernelCase& what, bool streaming, int samples, int warmup, bool verify) {
  std::vector<const std::byte*> sources;
  for (int source = 0; source < what.sources; ++source) sources.push_back(buffer(static_cast<size_t>(source) + 1));
  ReduceSpec spec{what.type, what.op, 0, streaming};
  if (what.op == ReduceOp::kAvg) spec.average_over = static_cast<uint32_t>(what.sources);
  const ReduceFunction reduce = find_reduce(what.type, what.op);
  std::byte* const result = buffer(0);
  const size_t bytes = what.elements * size_of(what.type);
  KernelTiming timing;
  timing.time_us = median_us(bytes, samples, warmup, [&] { reduce(result, sources, what.elements, spec); });
  timing.bandwidth = gigabytes_per_second(static_cast<double>(bytes) * (what.sources + 1), timing.time_us);
  if (!verify) return timing;
  std::memset(result, 0, bytes);
  reduce(result, sources, what.elements, spec);
  std::vector<std::byte> expected(bytes);
  const Reduction pattern = pattern_of(what);
  fill_reduced(pattern, 0, what.elements, expected.data());
  timing.wrong = count_wrong(pattern.type, pattern.op, result, expected.data(), what.elements);
  return timing;
}

double KernelBench::memcpy_bandwidth(size_t bytes, int samples, int warmup) {
  // Through a volatile pointer: copies whose result nobody reads must not be optimised away.
  void* (*volatile copy)(void*, const void*, size_t) = std::memcpy;
  const double time_us = median_us(bytes, samples, warmup, [&] { copy(buffer(0), buffer(1), bytes); });
  return gigabytes_per_second(static_cast<double>(bytes) * 2, time_us);
}

}  // namespace trestle::perf
