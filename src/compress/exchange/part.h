// A rank's part of a message of sparse elements, in memory that all ranks lay out alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "compress/topk.h"

namespace trestle {

// In this order: values (T: float or double), indices, and whether the rank could select them.
template <class T>
class Part {
 public:
  Part(std::byte* begin, size_t elements) : begin_(begin), elements_(elements) {}

  // A multiple of what values are aligned to, so that parts can follow each other.
  static size_t bytes(size_t elements) {
    constexpr size_t kAlignment = sizeof(uint64_t);
    const size_t bytes = elements * (sizeof(T) + sizeof(uint32_t)) + sizeof(uint32_t);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  T* values() const { return reinterpret_cast<T*>(begin_); }
  uint32_t* indices() const { return reinterpret_cast<uint32_t*>(begin_ + elements_ * sizeof(T)); }
  // 0: the rank had no memory to select elements. It lies right after the indices, so one broadcast carries both.
  uint32_t& is_there() const { return indices()[elements_]; }
  void put(const std::optional<SparseVectorOf<T>>& top) const {
    is_there() = top ? 1 : 0;
    if (!top) return;
    CHECK(top->indices.size() == elements_, "a selection has as many elements as the plan");
    std::copy(top->indices.begin(), top->indices.end(), indices());
    std::copy(top->values.begin(), top->values.end(), values());
  }

 private:
  std::byte* begin_;
  size_t elements_;
};

}  // namespace trestle
