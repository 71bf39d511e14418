// The tensors of a scheduler, as the program registered them. Value types and pure functions. Not changed after the
// first plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gradient/workload.h"

namespace trestle {

struct TensorEntry {
  std::string name;
  uint64_t count = 0;  // elements
  DataType type = DataType::kFloat32;
  std::byte* gradient = nullptr;   // nullptr: each step says where
  std::byte* parameter = nullptr;  // with an update function
  uint64_t bytes() const { return count * size_of(type); }
};

// For sentences: the tensor's number and name.
std::string named(const std::vector<TensorEntry>& tensors, size_t tensor);
// For the planners: where each gradient lies. Neighbours of different types count as apart, because they share no
// buffer.
std::vector<TensorPlace> tensor_places(const std::vector<TensorEntry>& tensors);
// Checks that no two tensors share elements, which would be added or updated twice. Error: names the two.
Status check_apart(const std::vector<TensorEntry>& tensors);

// Which steps' gradients a result sums.
struct ResultAge {
  uint32_t batches = 1;  // how many steps; 0: the result has no gradients
  uint32_t oldest = 0;   // steps between the oldest of them and the one that the result belongs to
};

// Updates `count` elements of a tensor from its element `offset` on.
using UpdateFunction = std::function<Status(uint32_t tensor, uint64_t offset, uint64_t count, const std::byte* gradient,
                                            std::byte* parameter, const ResultAge& age)>;

struct GradientSettings {
  int op = 0;  // trestleRedOp_t
  uint32_t liberties = 0;
  bool count_nans = false;
  UpdateFunction update;  // may be empty
};

}  // namespace trestle
