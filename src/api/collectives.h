// Turns the arguments of collectives, as they came over the C API, into a checked Call, and makes it. Any thread. Used
// by src/api only.
#pragma once

#include "api/calls.h"
#include "api/handles.h"

namespace trestle {

// Enum values as the caller passed them.
Result<DataType> checked_type(const char* function, int type);
// Checks the arguments of a collective; the error describes the first mistake.
Status check_call(const Communicator& communicator, const char* function, const Call& call);

// Checks everything that can be wrong with the arguments; the error message begins with `function`. Also fills in what
// follows from the arguments (in place, blocks).
Result<Call> checked_call(const Communicator& communicator, const char* function, const RawCall& raw);

// The stream of a call: the handle's, or the communicator's own.
Result<std::shared_ptr<Stream>> stream_of(const char* function, trestleStream_t stream,
                                          const std::shared_ptr<Communicator>& communicator);

// Enqueues the call, or adds it to the open group.
trestleResult_t run_collective(trestleComm_t comm, const char* function, const RawCall& raw, trestleStream_t stream);

}  // namespace trestle
