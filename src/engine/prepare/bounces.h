// Bounce buffers: host memory through which the messages of buffers on a device travel, because transports touch host
// memory only. The device reads and writes it too. Used while preparing. Pure.
//
// A phase borrows one block while it runs. Every step has a part of it, in which each of its segments in flight has
// room for its messages. A step never waits for room of another step. So bounce buffers cannot make ranks wait for each
// other, in whatever order their messages come.
#pragma once

#include <cstdint>

#include "engine/prepare/prepared.h"

namespace trestle {

// Bytes of the block of a phase, unless its steps need more for one segment each.
inline constexpr uint64_t kBounceBytes = uint64_t{64} << 20;

// Fills PreparedPhase::bounces of a phase whose steps are bound. At most `in_flight` segments of a step are in flight.
void add_bounces(PreparedPhase& phase, uint32_t in_flight);
// Fills Prepared::bounce_bytes and bounce_blocks from its phases and its schedule.
void count_bounces(Prepared& prepared);

}  // namespace trestle
