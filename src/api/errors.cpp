// The C API: errors.
#include "api/errors.h"

#include <optional>

#include "api/background.h"

using namespace trestle;

namespace {

// The last error message of this thread. A constant replaces it where there is no memory for one, or where the thread's
// own objects are gone already: destructors of static objects may still call.
struct Sentences {
  std::string last;
  std::string returned;
  ~Sentences();
};
thread_local bool sentences_gone = false;
thread_local const char* last_constant = nullptr;
thread_local Sentences sentences;

Sentences::~Sentences() {
  sentences_gone = true;
}

std::optional<Error> failure_of(Use<trestleComm>& use) {
  if (use.alive()) {
    if (const Failure failure = use.object()->failure()) return *failure;
  }
  return background_failure(use.handle());
}

}  // namespace

namespace trestle {

trestleResult_t report(Error error) noexcept {
  if (sentences_gone) return report_constant(error.code, "an error after the end of the thread that it happened on");
  sentences.last = std::move(error.message);
  last_constant = nullptr;
  return static_cast<trestleResult_t>(error.code);
}

trestleResult_t report_constant(Code code, const char* sentence) noexcept {
  last_constant = sentence;
  return static_cast<trestleResult_t>(code);
}

}  // namespace trestle

extern "C" {

const char* trestleGetErrorString(trestleResult_t result) {
  if (result < 0 || result >= trestleNumResults) return "unknown result code";
  return to_string(static_cast<Code>(result));
}

const char* trestleGetLastError(trestleComm_t comm) {
  bool failed = false;
  const trestleResult_t result = caught([&]() -> Status {
    Use use(comm);
    if (comm == nullptr || !(use.alive() || use.busy())) return {};
    const auto failure = failure_of(use);
    if (!failure) return {};
    failed = !sentences_gone;
    if (failed) sentences.returned = failure->message;
    return {};
  });
  if (failed && result == trestleSuccess) return sentences.returned.c_str();
  if (last_constant == nullptr && sentences_gone) return "";
  return last_constant != nullptr ? last_constant : sentences.last.c_str();
}

}  // extern "C"
