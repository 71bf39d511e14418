// attempt: for what one rank alone may fail to do in a call of all ranks. The others must hear of it, so a lack of
// memory becomes an error, too.
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
