#include "api/user_code.h"

#include "api/errors.h"

namespace trestle {

namespace {

thread_local UserCode running = UserCode::kNone;

}  // namespace

std::atomic<uint32_t> user_functions_running{0};

InUserCode::InUserCode(UserCode code) noexcept {
  running = code;
  user_functions_running.fetch_add(1, std::memory_order_relaxed);
}

InUserCode::~InUserCode() {
  user_functions_running.fetch_sub(1, std::memory_order_relaxed);
  running = UserCode::kNone;
}

UserCode user_code() noexcept {
  return running;
}

trestleResult_t refuse_in_user_code() noexcept {
  if (running == UserCode::kNotification) {
    return report_constant(
        Code::kInvalidUsage,
        "the library was called from inside a function given to trestleEventNotify, which holds up its progress: only "
        "trestleGetVersion, trestleGetErrorString and trestleGetLastError may be called there");
  }
  if (running == UserCode::kUpdate) {
    return report_constant(
        Code::kInvalidUsage,
        "the library was called from inside the update function of a trestleGradConfig_t, which the scheduler waits "
        "for: only trestleGetVersion, trestleGetErrorString and trestleGetLastError may be called there");
  }
  return report_constant(
      Code::kInvalidUsage,
      "the library was called from inside a reduction function (trestleRedOpCreate), which it waits "
      "for: only trestleGetVersion, trestleGetErrorString and trestleGetLastError may be called there");
}

}  // namespace trestle
