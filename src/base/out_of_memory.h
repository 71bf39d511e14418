// Lets a thread of the library, or a thread that holds a lock by hand, go on where memory cannot be had. Everywhere
// else std::bad_alloc goes up to the C boundary, which makes an error of it.
#pragma once

#include <new>
#include <utility>

namespace trestle {

// body(), or otherwise() if memory could not be had in it. `otherwise` does not throw and restores what body() left.
template <class Body, class Otherwise>
auto unless_out_of_memory(Body&& body, Otherwise&& otherwise) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return std::forward<Otherwise>(otherwise)();
  }
}

}  // namespace trestle
