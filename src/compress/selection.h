// A selection of the largest elements may need memory for all of a gradient. A rank without it must say so to the
// others, and can go on. Small allocations never get here: nothing else may be done in `select`.
#pragma once

#include <new>
#include <optional>

namespace trestle {

// What select() returns, a SparseVectorOf; or nothing if there is no memory for it.
template <class Select>
auto selection_if_memory(Select&& select) -> std::optional<decltype(select())> {
  try {
    return select();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace trestle
