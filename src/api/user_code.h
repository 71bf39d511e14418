// User functions that the library calls (reductions, notifications, updates of parameters), and which calls of the
// library they may make.
//
// Such a function holds up its caller, so a call of the library inside it would wait for itself. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cpu/float_environment.h"
#include "trestle/trestle.h"

namespace trestle {

enum class UserCode : uint8_t { kNone, kReduction, kNotification, kUpdate };

// While it lives, the calling thread is in a user function. Not nested: a user function cannot reach another one. What
// the function changes in the floating-point environment does not outlast it.
class InUserCode {
 public:
  explicit InUserCode(UserCode code) noexcept;
  ~InUserCode();
  InUserCode(const InUserCode&) = delete;
  InUserCode& operator=(const InUserCode&) = delete;

 private:
  const FloatEnvironment environment_;
};

extern std::atomic<uint32_t> user_functions_running;
// For the calling thread.
UserCode user_code() noexcept;
inline bool called_from_user_code() noexcept {
  return user_functions_running.load(std::memory_order_relaxed) != 0 && user_code() != UserCode::kNone;
}
trestleResult_t refuse_in_user_code() noexcept;

}  // namespace trestle
