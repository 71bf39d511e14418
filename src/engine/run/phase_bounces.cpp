// Messages of buffers on a device that other ranks' devices do not read where they are: copied out before they go, and
// in after they came.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "engine/run/phase_run.h"

namespace trestle {

namespace {

int64_t now_ns() {
  return monotonic_clock().now_ns();
}

}  // namespace

void PhaseRun::take_bounces() {
  bounces_->block = nullptr;
  if (phase_.bounce_bytes == 0) return;
  CHECK(!bounces_->free.empty() && bounces_->free.back()->bytes >= phase_.bounce_bytes,
        "a phase without bounce buffers");
  bounces_->block = bounces_->free.back();
  bounces_->free.pop_back();
}

// Allocates nothing: the block was in this list before. After a failure rooms in the outbox are not given back: a peer
// may still read there.
void PhaseRun::give_bounces_back() {
  if (bounces_->block != nullptr) bounces_->free.push_back(std::exchange(bounces_->block, nullptr));
}

void PhaseRun::abandon() {
  if (bounces_ != nullptr) give_bounces_back();
}

Piece PhaseRun::bounce(uint32_t step, uint64_t segment, uint32_t message, uint64_t bytes) const {
  const Region* const block = bounces_->block;
  return {block->base + phase_.bounces[step].at(segment, message), bytes, block};
}

// The bounce for the segment's next receive, from the peer of this group index. Empty: the run asks for a view.
std::span<const Piece> PhaseRun::bounce_for_receive(uint32_t step, Slot& slot, int32_t peer, uint64_t segment) const {
  if (gives_views(phase_.paths[static_cast<size_t>(peer)]) || slot.bytes == 0) return {};
  Piece& piece = slot.write[slot.posted];
  piece = bounce(step, segment, slot.bounced, slot.bytes);
  return {&piece, 1};
}

// Where a message that has arrived lies.
std::span<const ConstPiece> PhaseRun::received(const RecvRequest& request, std::vector<ConstPiece>& list) {
  if (is_view(request)) return request.view;
  list.clear();
  for (const Piece& piece : request.pieces) list.push_back({piece.data, piece.bytes, piece.region});
  return list;
}

// The copies come ahead of the messages. A message goes when its copies are done.
Result<bool> PhaseRun::advance_bounced_send(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = finish_sent(step, router);
  while (run.submitted < run.segments && run.submitted - run.finished < run.slots && has_turn(step) &&
         ready(step, end_of(step, run.submitted))) {
    if (!find_places(step, router)) break;
    TRY(submit_copy_out(step, router));
    moved = true;
  }
  while (run.issued < run.submitted && TRY(is_copied_out(step))) {
    if (!TRY(post_send(step, router))) break;
    moved = true;
  }
  return moved;
}

// Whether the oldest message that was not posted may go. What a peer reads in place must be done itself.
Result<bool> PhaseRun::is_copied_out(uint32_t step) {
  const StepRun& run = steps_[step];
  Work& work = work_slot(run, run.issued).work;
  Slot& segment = slot(run, run.issued);
  const bool is_ready = !is_beside(step) || ready(step, end_of(step, run.issued), false);
  if (is_ready && segment.through_host != 0 && segment.ready_ns == 0)
    segment.ready_ns = is_beside(step) ? now_ns() : work.ended.device_ns;
  return TRY(take_result(work)) && is_ready;
}

// Whether messages of the step may go over a path and through the host at the same time.
bool PhaseRun::is_divided(uint32_t step, Router router) const {
  return router.shares != nullptr && router.shares->divides(phase_.peers[static_cast<size_t>(plan_.steps[step].peer)]);
}

// Of the step's next message. None where its place is taken.
uint64_t PhaseRun::bytes_through_host(uint32_t step, Router router) {
  const StepRun& run = steps_[step];
  if (!is_divided(step, router) || run.segments < kLeastDividedSegments) return 0;
  const StepBounce& places = phase_.bounces[step];
  if (is_beside(step) && (!has_room(step) || run.finished + places.slots <= run.submitted)) return 0;
  const int32_t peer = phase_.peers[static_cast<size_t>(plan_.steps[step].peer)];
  return router.shares->bytes_through_host(peer, segment_size(step, run.submitted), now_ns());
}

// Finds where the parts of the step's next message are copied to: WorkSlot::write, in the order of its bytes. What is
// before them stays where it is. False: not yet.
bool PhaseRun::find_places(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  Slot& segment = slot(run, run.submitted);
  std::vector<Piece>& write = work_slot(run, run.submitted).write;
  const uint64_t bytes = segment_size(step, run.submitted);
  write.clear();
  segment.through_host = bytes == 0 ? 0 : bytes_through_host(step, router);
  if (is_beside(step)) {
    if (segment.through_host != 0) write.push_back(bounce(step, run.submitted, 0, segment.through_host));
    return true;
  }
  if (bytes == 0 || find_room(step, router)) return true;
  // A step whose messages lie in the outbox waits for the end of one of them, as if it had fewer segments in flight,
  // because host memory is slower. One that has no room there never waits for any: other operations may hold all of it.
  if (run.rooms != 0) return false;
  segment.through_host = 0;
  write.push_back(bounce(step, run.submitted, 0, bytes));
  return true;
}

// False: the step has no path to another process, the message is short, or there is no room.
bool PhaseRun::find_room(uint32_t step, Router router) {
  const PeerPath path = phase_.paths[static_cast<size_t>(plan_.steps[step].peer)];
  if (path == PeerPath::kOtherProcess) return find_room_on_device(step, router);
  StepRun& run = steps_[step];
  const uint64_t bytes = segment_size(step, run.submitted);
  if (path != PeerPath::kHostOutbox || bytes < router.host_outbox_from) return false;
  Slot& segment = slot(run, run.submitted);
  segment.host_room = router.host_outbox->take(bytes);
  if (segment.host_room == nullptr) return false;
  ++run.rooms;
  work_slot(run, run.submitted).write.push_back({segment.host_room, bytes, &router.host_outbox->region()});
  return true;
}

// In the outbox, and for the part through the host in that of host memory. Without room there the message is whole.
bool PhaseRun::find_room_on_device(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  Slot& segment = slot(run, run.submitted);
  std::vector<Piece>& write = work_slot(run, run.submitted).write;
  if (segment.through_host != 0) segment.host_room = router.host_outbox->take(segment.through_host);
  if (segment.host_room == nullptr) segment.through_host = 0;
  const uint64_t rest = segment_size(step, run.submitted) - segment.through_host;
  segment.room = router.outbox->take(rest);
  if (segment.room == nullptr) {
    if (const std::byte* const taken = std::exchange(segment.host_room, nullptr)) router.host_outbox->give_back(taken);
    return false;
  }
  ++run.rooms;
  write.push_back({segment.room, rest, &router.outbox->region()});
  if (segment.host_room != nullptr)
    write.push_back({segment.host_room, segment.through_host, &router.host_outbox->region()});
  return true;
}

// The peer has read what lies there.
void PhaseRun::give_rooms_back(uint32_t step, Slot& segment, Router router) {
  const std::byte* const room = std::exchange(segment.room, nullptr);
  const std::byte* const host_room = std::exchange(segment.host_room, nullptr);
  if (room != nullptr) router.outbox->give_back(room);
  if (host_room != nullptr) router.host_outbox->give_back(host_room);
  if (room != nullptr || host_room != nullptr) --steps_[step].rooms;
}

// To the places that were found for it.
Status PhaseRun::submit_copy_out(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  const StepRun& run = steps_[step];
  const uint64_t begin = run.submitted * run.segment_bytes;
  Slot& segment = slot(run, run.submitted);
  WorkSlot& at = work_slot(run, run.submitted);
  uint64_t copied = 0;
  for (const Piece& piece : at.write) copied += piece.bytes;
  const uint64_t in_place = segment_size(step, run.submitted) - copied;
  const BlockRange& blocks = plan_.sources[s.first_source].blocks;
  collect_pieces(blocks, s.logical_first, begin, in_place, segment.read);
  for (const Piece& piece : at.write) segment.read.push_back({piece.data, piece.bytes, piece.region});
  collect_pieces(blocks, s.logical_first, begin + in_place, copied, at.read[0]);
  at.work.kind = WorkKind::kCopy;
  at.work.bytes = copied;
  at.sources[0] = at.read[0];
  if (is_beside(step) && copied == 0) {
    at.work.state = WorkState::kDone;
  } else {
    TRY(submit(at, router));
  }
  segment.divided = {};
  segment.ready_ns = 0;
  if (segment.through_host != 0)
    segment.divided.host = router.shares->send_through_host(phase_.peers[s.peer], segment.through_host, now_ns());
  count_submitted(step);
  return {};
}

// The message over a path is on its way.
void PhaseRun::note_sent(uint32_t step, Slot& segment, Router router) {
  if (!is_divided(step, router) || (segment.room == nullptr && !is_beside(step))) return;
  const uint64_t direct = segment.send.bytes - segment.through_host;
  const int64_t now = now_ns();
  segment.divided.direct = router.shares->send_directly(segment.send.peer, direct, now);
  if (segment.through_host != 0 && segment.ready_ns != 0)
    segment.divided.waited_ns = now - std::max(segment.divided.host.sent_ns, segment.ready_ns);
}

// The peer's device has read it.
void PhaseRun::note_read(uint32_t step, Slot& segment, Router router) {
  if (!is_divided(step, router) || segment.divided.direct.bytes == 0) return;
  router.shares->read(segment.send.peer, segment.divided, segment.send.read, now_ns());
}

Status PhaseRun::submit_copy_in(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  const StepRun& run = steps_[step];
  const Slot& segment = slot(run, run.submitted);
  WorkSlot& at = work_slot(run, run.submitted);
  at.work.kind = WorkKind::kCopy;
  at.work.bytes = segment.bytes;
  at.sources[0] = received(segment.receives[0], at.read[0]);
  collect_pieces(s.destination, s.logical_first, run.submitted * run.segment_bytes, segment.bytes, at.write);
  TRY(submit(at, router));
  count_submitted(step);
  return {};
}

}  // namespace trestle
