// The blocks of a call, and how far its buffers reach. Pure functions, except that they read the communicator; any
// thread. Used by src/api only.
#pragma once

#include "api/calls.h"
#include "comm/communicator/communicator.h"

namespace trestle {

// Fills in the blocks and the count of a v-variant whose type and root are right.
Status read_blocks(const Communicator& communicator, const char* function, const RawCall& raw, PrepareRequest& request);

// How far a rank's buffers reach, in elements that it reads or writes.
CallElements extent_of(const Communicator& communicator, const Call& call);
// The send and the receive buffer must be the same memory, as the rules of in-place calls say, or must not overlap.
// `extent` is the call's.
Status check_overlap(const char* function, const Call& call, const CallElements& extent);

}  // namespace trestle
