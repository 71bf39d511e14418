// When a call on host memory is complete, and groups.
//
// No CUDA stream can tell the caller when an operation on host memory has ended. So a call is complete when it returns,
// inside a group when the outermost ncclGroupEnd returns. The stream argument is not used.
//
// A thread's open group is known here too, besides in libtrestle.so: its calls must be waited for at its end. Any
// thread; each has its own group, and a forked child has none. Nothing here throws.
#pragma once

#include "bindings/nccl/interface.h"

namespace trestle::nccl {

// A call that libtrestle.so was asked for.
struct IssuedCall {
  trestleCollective_t collective;
  size_t count;
  trestleDataType_t type;
  trestleComm_t comm;
  trestleStream_t stream;  // nullptr: the communicator's own. The caller waits for it
};

// The stream that stands for a CUDA stream of the caller's. Built without CUDA: nullptr for every one. With CUDA, a
// wrapped stream is what makes a call asynchronous.
inline trestleStream_t stream_of(void* cuda_stream) {
  (void)cuda_stream;
  return nullptr;
}

// The answer to a call, after waiting for it if need be.
Result finish(const IssuedCall& call, trestleResult_t issued);

// The communicator ends: the end of the group does not wait for its calls, because the communicator's end does.
void forget_calls_on(trestleComm_t comm);

// A call was refused here: if a group is open, its end does nothing and returns this code, with the sentence.
void refuse_group(Result code);

}  // namespace trestle::nccl
