// How a call of NCCL's interface answers: a code that NCCL has, and the sentence that ncclGetLastError returns.
//
// The last failed call of a thread was refused by libtrestle.so, which keeps the sentence, or by this library. Then it
// is kept here, cut at kSentenceBytes. Any thread; each has a sentence of its own. Nothing here allocates or throws.
#pragma once

#include "bindings/nccl/interface.h"

namespace trestle::nccl {

inline constexpr size_t kSentenceBytes = 512;

// Codes that NCCL lacks: an aborted communicator is kRemoteError, a failed user-defined reduction kInvalidUsage, one
// that is not known here kInternalError.
Result code_of(trestleResult_t result);

// The answer to a call that libtrestle.so has taken or refused.
Result answer(trestleResult_t result);

// Refuses a call with a sentence. In an open group this refuses the whole group, as any refused call does.
__attribute__((format(printf, 2, 3))) Result refuse(Result code, const char* format, ...);
// Refuses with a sentence that a call of the group got before, for the end of the group.
Result refuse_again(Result code, const char* sentence);
const char* last_refusal();

// Writes one line to the library's log at level INFO.
__attribute__((format(printf, 1, 2))) void remark(const char* format, ...);

// Defines a call that Trestle has nothing for. why: what to use instead.
#define NCCL_LACKS(name, parameters, why)                       \
  NCCL_API(Result, name, parameters) {                          \
    return refuse(Result::kInvalidUsage, "%s: %s", #name, why); \
  }

}  // namespace trestle::nccl
