// When a call is complete, and groups.
//
// On a communicator with a device a call is ordered on its CUDA stream (streams.h) and returns at once. Without a
// device no CUDA stream can tell the caller when the operation has ended. So a call is then complete when it returns,
// inside a group when the outermost ncclGroupEnd returns, and the stream argument is not used.
//
// A thread's open group is known here too, besides in libtrestle.so: its calls must be waited for at its end. Any
// thread; each has its own group, and a forked child has none. Nothing here throws.
#pragma once

#include "bindings/nccl/interface.h"
#include "bindings/nccl/streams.h"

namespace trestle::nccl {

// A call that libtrestle.so was asked for.
struct IssuedCall {
  trestleCollective_t collective;
  size_t count;
  trestleDataType_t type;
  trestleComm_t comm;
  CudaStream cuda;
};

// The answer to a call, after waiting for it if need be.
Result finish(const IssuedCall& call, trestleResult_t issued);

// The communicator ends: the end of the group does not wait for its calls, because the communicator's end does.
void forget_calls_on(trestleComm_t comm);
// Takes its streams from the communicator, before its handle can become that of another one. They end with the next
// end_taken_streams() outside of groups, or with the open group, whose calls use them.
void take_streams_of(trestleComm_t comm);
void end_taken_streams();

// The last call of this thread's open group on that CUDA stream; nullptr: there is none.
const IssuedCall* call_of_group(int device, const void* handle);

// A call was refused here: if a group is open, its end does nothing and returns this code, with the sentence.
void refuse_group(Result code);

}  // namespace trestle::nccl
