#include "gradient/executor/tensor_table.h"

#include <algorithm>

namespace trestle {
namespace {

Status apart(const std::vector<TensorEntry>& tensors, std::byte* TensorEntry::*memory, const char* what) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].*memory != nullptr && tensors[i].count > 0) order.push_back(i);
  }
  const auto begin = [&](size_t i) { return reinterpret_cast<uintptr_t>(tensors[i].*memory); };
  std::ranges::stable_sort(order, {}, begin);
  for (size_t k = 1; k < order.size(); ++k) {
    if (begin(order[k]) - begin(order[k - 1]) >= tensors[order[k - 1]].bytes()) continue;
    const auto [first, second] = std::minmax(order[k - 1], order[k]);
    return Error{Code::kInvalidArgument, std::string("the ") + what + " of " + named(tensors, first) + " and " +
                                             named(tensors, second) + " overlap in memory"};
  }
  return {};
}

}  // namespace

std::string named(const std::vector<TensorEntry>& tensors, size_t tensor) {
  return "tensor " + std::to_string(tensor) + " (\"" + tensors[tensor].name + "\")";
}

Status check_apart(const std::vector<TensorEntry>& tensors) {
  TRY(apart(tensors, &TensorEntry::gradient, "gradients"));
  return apart(tensors, &TensorEntry::parameter, "parameters");
}

std::vector<TensorPlace> tensor_places(const std::vector<TensorEntry>& tensors) {
  std::vector<TensorPlace> places;
  const TensorEntry* before = nullptr;
  for (const TensorEntry& tensor : tensors) {
    TensorPlace place = tensor.gradient == nullptr ? TensorPlace::kAnywhere : TensorPlace::kApart;
    if (before != nullptr && before->gradient != nullptr && before->type == tensor.type &&
        before->gradient + before->bytes() == tensor.gradient)
      place = TensorPlace::kBehind;
    places.push_back(place);
    if (tensor.count > 0) before = &tensor;
  }
  return places;
}

}  // namespace trestle
