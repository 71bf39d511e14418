#include "gradient/executor/loss_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"

namespace trestle {
namespace {

constexpr size_t kChunk = 1024;  // elements

struct Sums {
  double own = 0;   // |g_r|^2
  double dot = 0;   // g_r . g
  double mean = 0;  // |g|^2
};

// Up to kChunk elements as doubles.
std::array<double, kChunk> doubles(const std::byte* data, size_t count, DataType type) {
  std::array<double, kChunk> wide{};
  if (type == DataType::kFloat64) {
    std::memcpy(wide.data(), data, count * sizeof(double));
    return wide;
  }
  std::array<float, kChunk> floats{};
  widen_to_float32(floats.data(), data, count, type);
  std::copy_n(floats.begin(), count, wide.begin());
  return wide;
}

void add(Sums& sums, const std::byte* own, const std::byte* mean, const TensorEntry& tensor) {
  const size_t size = size_of(tensor.type);
  for (uint64_t at = 0; at < tensor.count; at += kChunk) {
    const size_t count = std::min<uint64_t>(kChunk, tensor.count - at);
    const std::array<double, kChunk> mine = doubles(own + at * size, count, tensor.type);
    const std::array<double, kChunk> all = doubles(mean + at * size, count, tensor.type);
    for (size_t i = 0; i < count; ++i) {
      sums.own += mine[i] * mine[i];
      sums.dot += mine[i] * all[i];
      sums.mean += all[i] * all[i];
    }
  }
}

// All that one rank alone may fail to get.
Status equip(trestleComm_t comm, const std::vector<TensorEntry>& tensors, CoreMemory& memory, CoreStream& stream) {
  uint64_t bytes = 1;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count > 0 && !is_float(tensors[i].type))
      return Error{Code::kInvalidUsage, named(tensors, i) + " is of integers, which are no gradients to measure"};
    bytes = std::max(bytes, tensors[i].bytes());
  }
  TRY(core_status(trestleMemAlloc(memory.out(), bytes), comm));
  return core_status(trestleStreamCreate(stream.out()), comm);
}

}  // namespace

Result<LossEstimate> measure_loss(trestleComm_t comm, const RankAgreement& agreement,
                                  const std::vector<TensorEntry>& tensors,
                                  const std::vector<const std::byte*>& gradients, double samples) {
  CoreMemory memory;
  CoreStream stream;
  TRY(agreement.agree("GradMeasureLoss", {}, equip(comm, tensors, memory, stream)));
  Sums sums;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count == 0) continue;
    auto* const mean = static_cast<std::byte*>(memory.get());
    TRY(agreement.part(
        core_status(trestleAllReduce(gradients[i], mean, tensors[i].count,
                                     static_cast<trestleDataType_t>(tensors[i].type), trestleAvg, comm, stream.get()),
                    comm)));
    TRY(agreement.part(core_status(trestleStreamSynchronize(stream.get()), comm)));
    add(sums, gradients[i], mean, tensors[i]);
  }
  const double apart = sums.dot - sums.mean;
  const std::vector<double> means = TRY(agreement.means({sums.own, apart * apart}));
  const auto ranks = static_cast<double>(agreement.ranks());
  if (agreement.ranks() == 1) return LossEstimate{sums.mean, 0};
  return LossEstimate{std::max(0.0, (ranks * sums.mean - means[0]) / (ranks - 1)),
                      std::sqrt(means[1] * ranks / (ranks - 1) * samples / ranks)};
}

}  // namespace trestle
