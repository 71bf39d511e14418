// Bounce buffers: host memory through which the messages of buffers on a device travel, because transports never touch
// the bytes of a device. The device reads and writes them too. Messages over a peer path need none where the receiver's
// device reads them (memory/peer_paths.h); those to another process need one only while the outbox has no room. But
// parts of either may go through the host at the same time (PeerPaths::divides()). Used while preparing. Pure.
//
// A phase borrows one block while it runs. The steps of a row (plan/message_rows.h) have rooms in it, which they use in
// turn in plan order. In a room each segment in flight has a slot for its messages. A step that comes to a room begins
// when the step before it there is complete (StepBounce::before). So a ring of many ranks needs no more memory than a
// small one, and its steps still overlap. Ranks may have different numbers of rooms: no plan needs more than one room
// per row.
#pragma once

#include <cstdint>

#include "engine/prepare/prepared.h"

namespace trestle {

// How the data of a phase leaves and reaches this rank's device.
struct DeviceReach {
  const PeerPaths* paths = nullptr;  // nullptr: there are none
  bool open_to_devices = false;      // PrepareRequest::open_to_devices
};

// Fills PreparedPhase::bounces and paths of a phase whose steps are bound. At most `in_flight` segments of a
// step are in flight. most_bytes: of the block, unless two rooms of one slot for each row need more.
void add_bounces(PreparedPhase& phase, const DeviceReach& reach, uint32_t in_flight, uint64_t most_bytes);
// Whether no other step uses the step's places any more. is_complete(step): of this phase. A step that began with its
// places began after all that had them before. Those that go in place do not wait for theirs, so the chain goes on.
template <class IsComplete>
bool has_places(const std::vector<StepBounce>& bounces, uint32_t step, const IsComplete& is_complete) {
  for (uint32_t before = bounces[step].before; before != kNoStep; before = bounces[before].before) {
    if (!is_complete(before)) return false;
    if (!bounces[before].beside) return true;
  }
  return true;
}
// Fills Prepared::bounce_bytes and bounce_blocks from its phases and its schedule.
void count_bounces(Prepared& prepared);

}  // namespace trestle
