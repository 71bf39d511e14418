#include "engine/prepare/bounces.h"

#include <algorithm>

#include "sched/model/segments.h"

namespace trestle {

namespace {

uint32_t messages_of(const Plan& plan, const Step& step) {
  if (is_message(step)) return 1;
  const auto* const sources = plan.sources.data() + step.first_source;
  return static_cast<uint32_t>(std::count_if(sources, sources + step.sources, is_peer_source));
}

// The step in whose room the messages of this one lie. Messages that take turns (Step::after) use the room of the one
// before the last: it is complete before this one begins.
uint32_t room_of(const Plan& plan, uint32_t step, const std::vector<uint32_t>& rooms) {
  const uint32_t before = plan.steps[step].after;
  const uint32_t first = before == kNoStep ? kNoStep : plan.steps[before].after;
  return first == kNoStep ? step : rooms[first];
}

}  // namespace

void add_bounces(PreparedPhase& phase, uint32_t in_flight) {
  const Plan& plan = *phase.plan;
  std::vector<uint32_t> rooms;                          // by step
  std::vector<uint64_t> room_bytes(plan.steps.size());  // by step: of one segment, where it is a room
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    StepBounce& bounce = phase.bounces.emplace_back();
    bounce.messages = messages_of(plan, plan.steps[s]);
    bounce.message_bytes = (std::min(phase.step_segment_bytes[s], phase.step_bytes[s]) + 63) / 64 * 64;
    rooms.push_back(room_of(plan, s, rooms));
    room_bytes[rooms[s]] = std::max(room_bytes[rooms[s]], bounce.messages * bounce.message_bytes);
  }
  uint64_t bytes = 0;
  for (const uint64_t room : room_bytes) bytes += room;
  const auto affordable =
      static_cast<uint32_t>(std::clamp<uint64_t>(kBounceBytes / std::max<uint64_t>(bytes, 1), 1, in_flight));
  std::vector<uint64_t> begins(plan.steps.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    begins[s] = phase.bounce_bytes;
    phase.bounce_bytes += room_bytes[s] * affordable;
    StepBounce& bounce = phase.bounces[s];
    bounce.offset = begins[rooms[s]];
    const uint64_t segments = segments_of(phase.step_bytes[s], phase.step_segment_bytes[s]);
    bounce.slots = static_cast<uint32_t>(std::min<uint64_t>(segments, bounce.messages == 0 ? in_flight : affordable));
  }
}

void count_bounces(Prepared& prepared) {
  uint32_t phases = 0;
  for (const auto& chunk : prepared.phases) {
    for (const PreparedPhase& phase : chunk) {
      prepared.bounce_bytes = std::max(prepared.bounce_bytes, phase.bounce_bytes);
      ++phases;
    }
  }
  uint32_t in_flight = 0;
  for (const DimensionOrder& order : prepared.schedule.orders) in_flight += order.in_flight;
  prepared.bounce_blocks = std::min(phases, in_flight);
}

}  // namespace trestle
