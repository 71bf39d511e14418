#include "engine/prepare/bounces.h"

#include <algorithm>

#include "plan/message_rows.h"
#include "sched/model/segments.h"

namespace trestle {

namespace {

// While one step ends, the next one begins.
constexpr uint64_t kFewestRooms = 2;
// Of the memory that rows may have: rows of messages that go in place. Without room they stay whole.
constexpr uint64_t kPartBeside = 4;

// Rooms of one size, which the steps of a row use in turn.
struct Row {
  std::vector<uint32_t> steps;
  uint64_t segment_bytes = 0;  // of all messages of one segment, at most
  uint64_t segments = 1;       // of a step, at most
};

uint64_t segments_of_step(const PreparedPhase& phase, uint32_t step) {
  return segments_of(phase.step_bytes[step], phase.step_segment_bytes[step]);
}

std::vector<Row> rows_of(const PreparedPhase& phase) {
  std::vector<Row> rows;
  for (std::vector<uint32_t>& steps : message_rows(*phase.plan)) {
    std::erase_if(steps, [&](uint32_t step) { return phase.bounces[step].messages == 0; });
    if (steps.empty()) continue;
    Row& row = rows.emplace_back();
    for (const uint32_t step : steps) {
      const StepBounce& bounce = phase.bounces[step];
      row.segment_bytes = std::max(row.segment_bytes, bounce.messages * bounce.message_bytes);
      row.segments = std::max(row.segments, segments_of_step(phase, step));
    }
    row.steps = std::move(steps);
  }
  return rows;
}

// affordable: segments of each row.
void give_rooms(PreparedPhase& phase, const Row& row, uint64_t affordable, uint32_t in_flight) {
  const uint64_t most = std::min<uint64_t>(row.segments, in_flight);
  const uint64_t fewest = std::min<uint64_t>(kFewestRooms, row.steps.size());
  const uint64_t slots = std::clamp<uint64_t>(affordable / fewest, 1, most);
  const uint64_t rooms = std::clamp<uint64_t>(affordable / slots, fewest, row.steps.size());
  for (size_t i = 0; i < row.steps.size(); ++i) {
    StepBounce& bounce = phase.bounces[row.steps[i]];
    bounce.offset = phase.bounce_bytes + i % rooms * slots * row.segment_bytes;
    bounce.slots = static_cast<uint32_t>(std::min<uint64_t>(bounce.slots, slots));
    if (i >= rooms) bounce.before = row.steps[i - rooms];
  }
  phase.bounce_bytes += rooms * slots * row.segment_bytes;
}

bool goes_in_place(PeerPath path, bool open_to_devices) {
  return path == PeerPath::kSameDevice || (path == PeerPath::kOtherDevice && open_to_devices);
}

// Whether a part of the step's messages, which go in place, may go through the host.
bool is_divided(const PreparedPhase& phase, uint32_t step, const DeviceReach& reach) {
  const Step& s = phase.plan->steps[step];
  if (s.kind != StepKind::kSend || reach.paths == nullptr) return false;
  const auto peer = static_cast<size_t>(s.peer);
  return reach.paths->divides(phase.peers[peer]) && goes_in_place(phase.paths[peer], reach.open_to_devices) &&
         phase.step_segment_bytes[step] >= kLeastDividedBytes && segments_of_step(phase, step) >= kLeastDividedSegments;
}

// Messages of one segment that cannot go in place, or not always.
uint32_t bounced_messages(const PreparedPhase& phase, const Step& step, bool open_to_devices) {
  const auto path = [&](int32_t peer) { return phase.paths[static_cast<size_t>(peer)]; };
  if (step.kind == StepKind::kSend) return goes_in_place(path(step.peer), open_to_devices) ? 0 : 1;
  if (step.kind == StepKind::kRecv) return gives_views(path(step.peer)) ? 0 : 1;
  const auto* const sources = phase.plan->sources.data() + step.first_source;
  return static_cast<uint32_t>(std::count_if(sources, sources + step.sources, [&](const Source& source) {
    return is_peer_source(source) && !gives_views(path(source.peer));
  }));
}

}  // namespace

void add_bounces(PreparedPhase& phase, const DeviceReach& reach, uint32_t in_flight, uint64_t most_bytes) {
  const Plan& plan = *phase.plan;
  for (const int32_t rank : phase.peers)
    phase.paths.push_back(reach.paths != nullptr ? reach.paths->to(rank) : PeerPath::kNone);
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    StepBounce& bounce = phase.bounces.emplace_back();
    const uint64_t longest = std::min(phase.step_segment_bytes[s], phase.step_bytes[s]);
    bounce.beside = is_divided(phase, s, reach);
    bounce.messages = bounce.beside ? 1 : bounced_messages(phase, plan.steps[s], reach.open_to_devices);
    bounce.message_bytes = bounce.beside ? most_through_host(longest) : (longest + 63) / 64 * 64;
    bounce.slots = static_cast<uint32_t>(std::min<uint64_t>(segments_of_step(phase, s), in_flight));
  }
  const std::vector<Row> rows = rows_of(phase);
  uint64_t bytes = 0;  // of one segment of each row
  for (const Row& row : rows) bytes += row.segment_bytes;
  for (const Row& row : rows) {
    const uint64_t most = phase.bounces[row.steps.front()].beside ? most_bytes / kPartBeside : most_bytes;
    give_rooms(phase, row, most / std::max<uint64_t>(bytes, 1), in_flight);
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
