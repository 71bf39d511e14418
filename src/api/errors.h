// Errors at the C boundary: the only catch, and the message for trestleGetLastError. Any thread. Used by src/api only.
#pragma once

#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "api/user_code.h"
#include "base/cpu/float_environment.h"
#include "base/result.h"
#include "comm/communicator/group.h"
#include "trestle/trestle.h"

namespace trestle {

// Both store a message for GetLastError of this thread.
trestleResult_t report(Error error) noexcept;
trestleResult_t report_constant(Code code, const char* sentence) noexcept;

// The only place that catches exceptions, and the one where the program's threads come into the library: whatever they
// do in it, they do in the default floating-point environment. Used directly for queries that are allowed inside a user
// function, too. without_memory: called where std::bad_alloc has left the body. A call that other ranks take part in
// fails its communicator then: they may know of it.
template <class F, class W>
trestleResult_t caught(F&& body, W&& without_memory) noexcept {
  const FloatEnvironment environment;
  try {
    Status status = body();
    if (!status.ok() && status.error().code == Code::kInProgress) return trestleInProgress;  // not an error
    return status.ok() ? trestleSuccess : report(std::move(status).error());
  } catch (const std::bad_alloc&) {
    without_memory();
    return report_constant(Code::kSystemError, "out of memory");
  } catch (const std::system_error&) {
    return report_constant(Code::kSystemError, "a system call of the standard library failed");
  } catch (...) {
    return report_constant(Code::kInternalError, "unexpected exception");
  }
}

template <class F>
trestleResult_t caught(F&& body) noexcept {
  return caught(std::forward<F>(body), [] {});
}

template <class F, class W>
trestleResult_t guarded(F&& body, W&& without_memory) noexcept {
  return called_from_user_code() ? refuse_in_user_code()
                                 : caught(std::forward<F>(body), std::forward<W>(without_memory));
}
template <class F>
trestleResult_t guarded(F&& body) noexcept {
  return guarded(std::forward<F>(body), [] {});
}

// guarded() for calls that an open group collects: after an error the group's end refuses the whole group.
template <class F, class W>
trestleResult_t guarded_in_group(F&& body, W&& without_memory) noexcept {
  if (called_from_user_code()) return refuse_in_user_code();  // the group does not belong to the user function
  const trestleResult_t result = caught(
      [&]() -> Status {
        Status status = body();
        if (!status.ok() && status.error().code != Code::kInProgress) Group::of_this_thread().remember(status.error());
        return status;
      },
      without_memory);
  if (result != trestleSuccess && result != trestleInProgress) Group::of_this_thread().spoil(static_cast<Code>(result));
  return result;
}
template <class F>
trestleResult_t guarded_in_group(F&& body) noexcept {
  return guarded_in_group(std::forward<F>(body), [] {});
}

}  // namespace trestle
