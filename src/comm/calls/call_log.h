// What a communicator logs about calls at INFO. Any thread. The caller checks that the subsystem is on; nothing here is
// hot.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/calls/call.h"
#include "comm/membership/membership.h"
#include "engine/run/stream.h"
#include "sched/schedule.h"

namespace trestle {

// A call that is about to be submitted. stream: nullptr for the communicator's own. number: nullopt: the call moves no
// data and has none. Calls of the library itself are not logged.
void log_call(const Membership& membership, const Call& call, const Stream* stream, std::optional<uint64_t> number);
// The user's first message to a peer, or from it.
void log_first_message(const Membership& membership, const Call& call);
// The schedule that was selected, and its time on this topology.
void log_schedule(const Membership& membership, const Topology& topology, const PrepareRequest& request,
                  const Schedule& schedule);

}  // namespace trestle
