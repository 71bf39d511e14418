// SparseMemory: the residuals of gradients of which only the largest elements travel, and the indices and values that
// travel (AR-Topk; FLEX, arXiv 2312.02493).
//
// Used by the executor's thread only. Elements are chosen of each tensor by itself. So they are not the largest ones of
// all tensors together, but a tensor's elements may travel with any other tensor's. Each step adds the gradient to the
// residual and takes from the residual what travels, so every gradient is sent or still in the residual. 16-bit
// gradients have residuals and values of float32, because 16 bits would round away gradients that are small beside the
// residual. Where the result is a mean, their values leave the residual as shares that ranks only add, because the sum
// of large values of bfloat16 does not fit into float32. Other types are divided when all ranks' values are added.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gradient/executor/core_calls.h"
#include "gradient/executor/tensor_table.h"
#include "gradient/workload.h"
#include "kernels/sparse.h"

namespace trestle {

// Error (kInvalidUsage): names a tensor whose elements cannot be chosen, because they are of another type than float32,
// float16, bfloat16 and float64, or more than indices of 32 bits can number.
Status check_compressible(const std::vector<TensorEntry>& tensors);

class SparseMemory {
 public:
  // The types of residuals and values.
  static constexpr std::array<DataType, 2> kSumTypes = {DataType::kFloat32, DataType::kFloat64};
  static DataType sum_type(DataType type) { return type == DataType::kFloat64 ? type : DataType::kFloat32; }

  // ratio: the part of each tensor that travels, rounded up. mean_over: of so many ranks; 0: results are sums. The
  // tensors must be compressible, and live longer. Errors: those of trestleMemAlloc.
  static Result<std::unique_ptr<SparseMemory>> make(trestleComm_t comm, const std::vector<TensorEntry>& tensors,
                                                    double ratio, uint32_t mean_over);

  // ---- what travels
  uint64_t elements(uint32_t tensor) const { return travelling_[tensor].count; }
  // By tensor: an entry whose `gradient` points to the values that travel, with their number and type.
  const std::vector<TensorEntry>& travelling() const { return travelling_; }
  uint32_t* indices(uint32_t tensor) const { return reinterpret_cast<uint32_t*>(memory() + places_[tensor].indices); }
  // Indices of neighbouring tensors lie together. So do values of neighbouring tensors with the same type of sums.
  std::span<uint32_t> indices_of(const TensorGroup& tensors) const;
  std::span<std::byte> values_of(const TensorGroup& tensors, DataType sum_type) const;
  // Whether some elements stay behind, so that residuals are not empty after a step.
  bool leaves_any() const;

  // ---- a step
  // Adds the gradient to the residual.
  Accumulated add(uint32_t tensor, const std::byte* gradient);
  // Writes the indices of the residual's largest elements. Error (kSystemError): there is no memory to find them.
  Status select(uint32_t tensor);
  // Error (kInternalError): an index, perhaps one from another rank, lies outside of the tensor.
  Status check_indices(uint32_t tensor) const { return check_indices(tensor, indices(tensor)); }
  Status check_indices(uint32_t tensor, const uint32_t* indices) const;
  // Moves what travels from the residual to the values, for the ranks to add. Returns the sum of its squares.
  double take(uint32_t tensor);
  // Writes the values, which are sums over the ranks now, to their places in the result, and zeros elsewhere. Once per
  // take().
  void give(uint32_t tensor, std::byte* result);
  struct Sent {
    const uint32_t* indices;
    const std::byte* values;
  };
  // give() of what all ranks have sent: adds their values in the order of `ranks`.
  void give_sum(uint32_t tensor, std::span<const Sent> ranks, std::byte* result);

  // ---- what stayed behind
  // Before the ranks add their residuals; give_residual() writes the sum or the mean.
  void share_residuals();
  std::span<std::byte> residuals(DataType sum_type) const;
  void give_residual(uint32_t tensor, std::byte* result) const;
  void clear_residuals();

 private:
  struct Place {
    uint64_t residual = 0;  // bytes from the beginning of the memory
    uint64_t indices = 0;
  };
  struct Area {
    uint64_t begin = 0;
    uint64_t bytes = 0;
  };
  SparseMemory(const std::vector<TensorEntry>& tensors, uint32_t mean_over)
      : tensors_(tensors), mean_over_(mean_over), places_(tensors.size()) {}
  uint64_t lay_out(double ratio);
  std::byte* memory() const { return static_cast<std::byte*>(memory_.get()); }
  template <class T>
  T* residual(uint32_t tensor) const {
    return reinterpret_cast<T*>(memory() + places_[tensor].residual);
  }
  template <class T>
  void add_sent(uint32_t tensor, std::span<const Sent> ranks, std::byte* sums) const;

  // Sums of shares are means already.
  bool is_divided(uint32_t tensor) const;

  const std::vector<TensorEntry>& tensors_;
  const uint32_t mean_over_;
  std::vector<Place> places_;
  std::vector<TensorEntry> travelling_;
  std::array<Area, kSumTypes.size()> residuals_{};
  Area scratch_;  // float32 sums from which a 16-bit result is rounded
  CoreMemory memory_;
};

}  // namespace trestle
