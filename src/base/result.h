// Result<T>: a value or an Error (code + sentence). All failures inside the library travel this way.
//
// Value type, movable, any thread. A function that can fail returns Result<T> (or Status = Result<void>), marked
// [[nodiscard]]. TRY unwraps a Result, or returns its error from the enclosing function. Exceptions are not used for
// failures; they end at the C API (src/api).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace trestle {

// Numbers as those of trestleResult_t (include/trestle/trestle.h); src/api/communicators.cpp asserts that at compile
// time.
enum class Code : int {
  kSuccess = 0,
  kUnhandledDeviceError = 1,
  kSystemError = 2,       // an operating-system call failed, or there is no memory
  kInternalError = 3,     // our own bug
  kInvalidArgument = 4,   // a bad value of an argument or a variable
  kInvalidUsage = 5,      // good values, wrong moment or combination
  kRemoteError = 6,       // another rank died, left, or reported an error
  kInProgress = 7,        // not an error: ask again
  kTimeout = 8,           // a deadline passed
  kAborted = 9,           // the communicator was aborted
  kReductionFailed = 10,  // a user-defined reduction gave up or threw
};
inline constexpr Code kLastCode = Code::kReductionFailed;

const char* to_string(Code code);

// Whether a failure of one rank has the same code on all ranks. A program can do something about these, whichever rank
// found them: a call that differs, a deadline, a system without memory or descriptors. The sentence names the rank. The
// other failures are kRemoteError elsewhere.
constexpr bool is_everybodys(Code code) {
  return code == Code::kAborted || code == Code::kTimeout || code == Code::kInvalidUsage ||
         code == Code::kReductionFailed || code == Code::kSystemError;
}

struct [[nodiscard]] Error {
  Code code = Code::kInternalError;
  std::string message;  // one sentence for a person, without a trailing newline
};

inline Error invalid_argument(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}
inline Error invalid_usage(std::string sentence) {
  return {Code::kInvalidUsage, std::move(sentence)};
}

// An error that several hold, or nullptr. A copy takes no memory, so that a failure can always be passed on.
using Failure = std::shared_ptr<const Error>;

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor): `return value;`
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return error;`
  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }
  T& value() & {
    CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  const T& value() const& {
    CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  T&& value() && {
    CHECK(ok(), "value() of a failed Result");
    return std::move(*value_);
  }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  std::optional<T> value_;
  Error error_{Code::kSuccess, {}};
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return error;`
  explicit operator bool() const { return ok(); }
  bool ok() const { return !error_.has_value(); }
  void value() const { CHECK(ok(), "value() of a failed Status"); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace trestle

// The value of a Result; or returns its error from the enclosing function: `auto x = TRY(f());`, `TRY(g());`.
#define TRY(expression)                                           \
  ({                                                              \
    auto try_result_ = (expression);                              \
    if (!try_result_.ok()) return std::move(try_result_).error(); \
    std::move(try_result_).value();                               \
  })
