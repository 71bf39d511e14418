// Messages of buffers on a device that other ranks' devices do not read where they are: copied out before they go, and
// in after they came.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/run/phase_run.h"

namespace trestle {

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

// The copies come ahead of the messages. A message goes when its copy is done.
Result<bool> PhaseRun::advance_bounced_send(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = finish_sent(step, router);
  while (run.submitted < run.segments && run.submitted - run.finished < run.slots && has_turn(step) &&
         ready(step, run.submitted * run.segment_bytes + segment_size(step, run.submitted))) {
    const std::optional<Piece> to = place_to_send_from(step, router);
    if (!to) break;
    TRY(submit_copy_out(step, *to, router));
    moved = true;
  }
  while (run.issued < run.submitted && TRY(take_result(work_slot(run, run.issued).work))) {
    if (!TRY(post_send(step, router))) break;
    moved = true;
  }
  return moved;
}

// Where the step's next message is copied to. A step whose messages lie in the outbox waits for the end of one of them,
// as if it had fewer segments in flight, because host memory is slower. One that has no room there never waits for any:
// other operations may hold all of it.
std::optional<Piece> PhaseRun::place_to_send_from(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  const uint64_t bytes = segment_size(step, run.submitted);
  if (bytes == 0) return Piece{};
  const auto peer = static_cast<size_t>(plan_.steps[step].peer);
  const bool has_path = router.outbox != nullptr && phase_.paths[peer] == PeerPath::kOtherProcess;
  std::byte* const room = has_path ? router.outbox->take(bytes) : nullptr;
  if (room == nullptr && run.rooms != 0) return std::nullopt;
  if (room == nullptr) return bounce(step, run.submitted, 0, bytes);
  ++run.rooms;
  slot(run, run.submitted).room = room;
  return Piece{room, bytes, &router.outbox->region()};
}

// to: empty for no bytes.
Status PhaseRun::submit_copy_out(uint32_t step, const Piece& to, Router router) {
  const Step& s = plan_.steps[step];
  const StepRun& run = steps_[step];
  const uint64_t begin = run.submitted * run.segment_bytes;
  Slot& segment = slot(run, run.submitted);
  WorkSlot& at = work_slot(run, run.submitted);
  at.work.kind = WorkKind::kCopy;
  at.work.bytes = to.bytes;
  collect_pieces(plan_.sources[s.first_source].blocks, s.logical_first, begin, to.bytes, at.read[0]);
  at.sources[0] = at.read[0];
  at.write.clear();
  segment.read.clear();
  if (to.bytes != 0) {
    at.write.push_back(to);
    segment.read.push_back({to.data, to.bytes, to.region});
  }
  TRY(submit(at, router));
  count_submitted(step);
  return {};
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
