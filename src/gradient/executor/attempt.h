// attempt: runs a part of a collective call in which one rank alone may fail. It makes an error of a lack of memory,
// too, so that the rank can tell the others.
#pragma once

#include <utility>

#include "base/out_of_memory.h"
#include "base/result.h"

namespace trestle {

// body() returns a Status or a Result.
template <class Body>
auto attempt(Body&& body) -> decltype(body()) {
  return unless_out_of_memory(std::forward<Body>(body), []() -> decltype(body()) {
    return Error{Code::kSystemError, "out of memory"};
  });
}

}  // namespace trestle
