#include "gradient/executor/run/sparse_memory.h"

#include <algorithm>
#include <cstring>

#include "compress/selection.h"
#include "compress/topk.h"
#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "kernels/scale.h"

namespace trestle {
namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 32;

bool is_narrow(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16;
}

// Divides sums by the number of ranks. to: equal to the sums or disjoint from them.
void divide_sums(std::byte* to, const std::byte* sums, uint64_t elements, DataType type, uint32_t ranks) {
  const std::array<const std::byte*, 1> sources = {sums};
  reduce(to, sources, elements, {type, ReduceOp::kAvg, ranks, false});
}

bool has_type(DataType type) {
  return is_narrow(type) || type == DataType::kFloat32 || type == DataType::kFloat64;
}

}  // namespace

Status check_compressible(const std::vector<TensorEntry>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count == 0 || (has_type(tensors[i].type) && tensors[i].count <= kMostElements)) continue;
    const std::string why = has_type(tensors[i].type) ? "has " + std::to_string(tensors[i].count) + " elements"
                                                      : std::string("is of type ") + to_string(tensors[i].type);
    return Error{Code::kInvalidUsage, named(tensors, i) + " " + why +
                                          ": only tensors of at most 4294967296 elements of float32, float16, bfloat16 "
                                          "or float64 are compressed"};
  }
  return {};
}

Result<std::unique_ptr<SparseMemory>> SparseMemory::make(trestleComm_t comm, const std::vector<TensorEntry>& tensors,
                                                         double ratio, uint32_t mean_over) {
  std::unique_ptr<SparseMemory> memory(new SparseMemory(tensors, mean_over));
  const uint64_t bytes = memory->lay_out(ratio);
  if (bytes == 0) return memory;
  TRY(core_status(trestleMemAlloc(memory->memory_.out(), bytes), comm));
  for (TensorEntry& one : memory->travelling_)
    one.gradient = memory->memory() + reinterpret_cast<uintptr_t>(one.gradient);
  return memory;
}

// Residuals and values by type, indices of all types together, each in the order of the tensors. Until there is memory,
// the values' places count from its beginning.
uint64_t SparseMemory::lay_out(double ratio) {
  uint64_t end = 0;
  for (const TensorEntry& tensor : tensors_) {
    const DataType type = sum_type(tensor.type);
    travelling_.push_back({tensor.name, top_k_count(ratio, tensor.count), type, nullptr, nullptr});
    if (is_narrow(tensor.type)) scratch_.bytes = std::max(scratch_.bytes, tensor.count * size_of(type));
  }
  for (size_t t = 0; t < kSumTypes.size(); ++t) {
    residuals_[t].begin = end;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (travelling_[i].type != kSumTypes[t]) continue;
      places_[i].residual = end;
      end += tensors_[i].count * size_of(kSumTypes[t]);
    }
    residuals_[t].bytes = end - residuals_[t].begin;
    end = whole_lines(end);
    for (TensorEntry& one : travelling_) {
      if (one.type != kSumTypes[t]) continue;
      one.gradient = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(end));
      end += one.bytes();
    }
    end = whole_lines(end);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    places_[i].indices = end;
    end += travelling_[i].count * sizeof(uint32_t);
  }
  scratch_.begin = whole_lines(end);
  return scratch_.begin + scratch_.bytes;
}

std::span<uint32_t> SparseMemory::indices_of(const TensorGroup& tensors) const {
  uint64_t count = 0;
  for (uint32_t i = tensors.first; i <= tensors.last; ++i) count += elements(i);
  return {indices(tensors.first), count};
}

std::span<std::byte> SparseMemory::values_of(const TensorGroup& tensors, DataType sum_type) const {
  std::byte* begin = nullptr;
  uint64_t bytes = 0;
  for (uint32_t i = tensors.first; i <= tensors.last; ++i) {
    if (travelling_[i].type != sum_type || elements(i) == 0) continue;
    if (begin == nullptr) begin = travelling_[i].gradient;
    bytes += travelling_[i].bytes();
  }
  return {begin, bytes};
}

bool SparseMemory::leaves_any() const {
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (elements(i) < tensors_[i].count) return true;
  }
  return false;
}

// ---- a step

Accumulated SparseMemory::add(uint32_t tensor, const std::byte* gradient) {
  const TensorEntry& entry = tensors_[tensor];
  if (entry.count == 0) return {};
  if (is_narrow(entry.type)) return accumulate_widened(residual<float>(tensor), gradient, entry.count, entry.type);
  if (entry.type == DataType::kFloat64) return accumulate(residual<double>(tensor), gradient, entry.count);
  return accumulate(residual<float>(tensor), gradient, entry.count);
}

Status SparseMemory::select(uint32_t tensor) {
  const auto select_of = [&]<class T>(const T* residual) -> Status {
    const std::span<const T> all(residual, tensors_[tensor].count);
    const auto top = selection_if_memory([&] { return top_k(all, elements(tensor)); });
    if (!top) return Error{Code::kSystemError, "no memory to select elements of " + named(tensors_, tensor)};
    std::copy(top->indices.begin(), top->indices.end(), indices(tensor));
    return {};
  };
  if (sum_type(tensors_[tensor].type) == DataType::kFloat64) return select_of(residual<double>(tensor));
  return select_of(residual<float>(tensor));
}

Status SparseMemory::check_indices(uint32_t tensor, const uint32_t* indices) const {
  const uint32_t* const end = indices + elements(tensor);
  const auto wrong = std::find_if(indices, end, [&](uint32_t index) { return index >= tensors_[tensor].count; });
  if (wrong == end) return {};
  return Error{Code::kInternalError, "element " + std::to_string(*wrong) + " of " + named(tensors_, tensor) +
                                         ", which has " + std::to_string(tensors_[tensor].count) +
                                         ", came from another rank"};
}

bool SparseMemory::is_divided(uint32_t tensor) const {
  return mean_over_ > 0 && !is_narrow(tensors_[tensor].type);
}

double SparseMemory::take(uint32_t tensor) {
  const auto move = [&](auto* residual, auto* values) {
    gather(values, residual, indices(tensor), elements(tensor));
    clear_at(residual, indices(tensor), elements(tensor));
    return square_sum(values, elements(tensor));
  };
  std::byte* const values = travelling_[tensor].gradient;
  if (sum_type(tensors_[tensor].type) == DataType::kFloat64)
    return move(residual<double>(tensor), reinterpret_cast<double*>(values));
  auto* const floats = reinterpret_cast<float*>(values);
  const double square = move(residual<float>(tensor), floats);
  if (mean_over_ > 0 && !is_divided(tensor)) scale_to_share(floats, elements(tensor), mean_over_);
  return square;
}

void SparseMemory::give(uint32_t tensor, std::byte* result) {
  const TensorEntry& entry = tensors_[tensor];
  std::byte* const values = travelling_[tensor].gradient;
  if (is_divided(tensor)) divide_sums(values, values, elements(tensor), entry.type, mean_over_);
  std::memset(result, 0, entry.bytes());
  if (is_narrow(entry.type)) {
    scatter_narrowed(result, indices(tensor), reinterpret_cast<const float*>(values), elements(tensor), entry.type);
  } else if (entry.type == DataType::kFloat64) {
    scatter(result, indices(tensor), reinterpret_cast<const double*>(values), elements(tensor));
  } else {
    scatter(result, indices(tensor), reinterpret_cast<const float*>(values), elements(tensor));
  }
}

template <class T>
void SparseMemory::add_sent(uint32_t tensor, std::span<const Sent> ranks, std::byte* sums) const {
  std::memset(sums, 0, tensors_[tensor].count * sizeof(T));
  for (const Sent& sent : ranks)
    scatter_add(sums, sent.indices, reinterpret_cast<const T*>(sent.values), elements(tensor));
}

void SparseMemory::give_sum(uint32_t tensor, std::span<const Sent> ranks, std::byte* result) {
  const TensorEntry& entry = tensors_[tensor];
  std::byte* const sums = is_narrow(entry.type) ? memory() + scratch_.begin : result;
  if (entry.type == DataType::kFloat64) {
    add_sent<double>(tensor, ranks, sums);
  } else {
    add_sent<float>(tensor, ranks, sums);
  }
  if (is_divided(tensor)) divide_sums(sums, sums, entry.count, entry.type, mean_over_);
  if (is_narrow(entry.type)) narrow_from_float32(result, reinterpret_cast<float*>(sums), entry.count, entry.type);
}

// ---- what stayed behind

std::span<std::byte> SparseMemory::residuals(DataType sum_type) const {
  const Area& area = residuals_[sum_type == DataType::kFloat64 ? 1 : 0];
  return {memory() + area.begin, area.bytes};
}

void SparseMemory::share_residuals() {
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (mean_over_ > 0 && !is_divided(i)) scale_to_share(residual<float>(i), tensors_[i].count, mean_over_);
  }
}

void SparseMemory::give_residual(uint32_t tensor, std::byte* result) const {
  const TensorEntry& entry = tensors_[tensor];
  const std::byte* const sums = memory() + places_[tensor].residual;
  if (entry.count == 0) return;
  if (is_narrow(entry.type)) return narrow_from_float32(result, residual<float>(tensor), entry.count, entry.type);
  if (is_divided(tensor)) return divide_sums(result, sums, entry.count, entry.type, mean_over_);
  std::memcpy(result, sums, entry.bytes());
}

void SparseMemory::clear_residuals() {
  for (const Area& area : residuals_) {
    if (area.bytes > 0) std::memset(memory() + area.begin, 0, area.bytes);
  }
}

}  // namespace trestle
