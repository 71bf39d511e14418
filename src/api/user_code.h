// Functions of the user that the library calls (reductions, notifications), and what they may call of the library.
//
// Such a function holds up what it is called by, so a call of the library inside it would wait for itself. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "trestle/trestle.h"

namespace trestle {

enum class UserCode : uint8_t { kNone, kReduction, kNotification };

// While it lives, the calling thread is in a function of the user. Not nested: such a function cannot get to another.
class InUserCode {
 public:
  explicit InUserCode(UserCode code) noexcept;
  ~InUserCode();
  InUserCode(const InUserCode&) = delete;
  InUserCode& operator=(const InUserCode&) = delete;
};

extern std::atomic<uint32_t> user_functions_running;
// Of the calling thread.
UserCode user_code() noexcept;
inline bool called_from_user_code() noexcept {
  return user_functions_running.load(std::memory_order_relaxed) != 0 && user_code() != UserCode::kNone;
}
trestleResult_t refuse_in_user_code() noexcept;

}  // namespace trestle
