// The streams of libtrestle.so that stand for the CUDA streams of calls on communicators with a device.
//
// A CUDA stream is wrapped once for each communicator that calls on it, and stays wrapped until the communicator ends:
// a failure on one communicator is none on another. Calls of one group on one CUDA stream use one of these streams
// together, or one would wait for the end of the other. Default streams are those of the communicator's device, as in
// NCCL, whatever device is current on the thread.
//
// Any thread. Nothing is locked, nothing throws, and nothing is freed but streams: a list of records only grows, and
// the records of communicators that have ended are used again.
#pragma once

#include "bindings/nccl/interface.h"

namespace trestle::nccl {

// A CUDA stream of a call. `device`: the communicator's, kNoDevice if it has none.
struct CudaStream {
  int device;
  void* handle;            // of the default streams: nullptr and cudaStreamPerThread
  trestleStream_t stream;  // nullptr: the communicator's own, and the caller waits for the call
};

// Finds the stream of a call, or wraps it. Refuses the call if CUDA or libtrestle.so refuses that. A communicator that
// cannot be used has no device here: the call itself says why.
Result find_stream(const char* function, trestleComm_t comm, void* cuda_stream, CudaStream* found);

// Makes `owner` the owner of the communicator's streams. No call finds them from now on.
void give_streams_of(trestleComm_t comm, const void* owner);
// Ends the streams of that owner. Their communicators have ended, and their calls with them.
void end_streams_of(const void* owner);

}  // namespace trestle::nccl
