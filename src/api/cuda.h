// What calls on devices must keep to: their streams, and where their data lies. Any thread. Used by src/api only.
#pragma once

#include "api/handles.h"
#include "comm/calls/call.h"

namespace trestle {

// Refuses a stream of another device than the communicator's. A communicator without a device takes any.
Status check_device(const char* function, const Stream& stream, const Communicator& communicator);

// Finds out whether this rank has data in the call, and with a device, where it lies. Refuses buffers that cannot be
// used. `extent` is the call's.
Status look_at_buffers(const Communicator& communicator, const char* function, Call& call, const CallElements& extent);
// With a device: refuses a scalar in memory of a device, because the host reads it.
Status check_scalar(const Communicator& communicator, const char* function, const void* scalar);
// Whether the communicator is alive and has a device. Only then may check_for_host() be called.
bool has_device(trestleComm_t comm);
// Refuses memory of a device, for buffers that the host itself reads and writes. name: such as "gradient". NULL passes.
Status check_for_host(const char* name, const void* memory);

}  // namespace trestle
