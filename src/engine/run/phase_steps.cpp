// The four kinds of steps: what each posts, submits and finishes.
#include <algorithm>
#include <utility>

#include "engine/run/phase_run.h"

namespace trestle {

Result<bool> PhaseRun::advance_send(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  bool moved = finish_sent(step, router);
  while (run.issued < run.segments && run.issued - run.finished < run.slots) {
    const uint64_t begin = run.issued * run.segment_bytes;
    const uint64_t bytes = segment_size(step, run.issued);
    if (!has_turn(step) || !ready(step, begin + bytes)) break;
    Slot& segment = slot(run, run.issued);
    collect_pieces(plan_.sources[s.first_source].blocks, s.logical_first, begin, bytes, segment.read);
    if (!TRY(post_send(step, router))) break;
    moved = true;
  }
  return moved;
}

// Posts the message of the next segment, whose pieces are in Slot::read.
Result<bool> PhaseRun::post_send(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  Slot& segment = slot(run, run.issued);
  segment.send.peer = phase_.peers[s.peer];
  segment.send.tag = tag(step, s.message, run.issued * run.segment_bytes);
  segment.send.turn = turn_;
  segment.send.pieces = segment.read;
  segment.send.bytes = segment_size(step, run.issued);
  segment.send.step = step;
  segment.send.mapped = false;
  segment.send.read = {};
  if (!TRY(router[segment.send.peer]->post_send(segment.send))) return false;
  router.statistics->sent(segment.send.peer, segment.send.bytes, segment.send.mapped);
  note_sent(step, segment, router);
  ++run.issued;
  finish_sent(step, router);
  return true;
}

bool PhaseRun::finish_sent(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.issued && slot(run, run.finished).send.state == RequestState::kDone) {
    Slot& segment = slot(run, run.finished);
    note_read(step, segment, router);
    give_rooms_back(step, segment, router);
    finish_segment(step);
    moved = true;
  }
  return moved;
}

Result<bool> PhaseRun::advance_recv(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.issued && slot(run, run.finished).receives[0].state == RequestState::kDone) {
    RecvRequest& request = slot(run, run.finished).receives[0];
    router.statistics->received(request.peer, request.bytes);
    // A message of no bytes has no pieces, so the transport treats it as a view.
    if (request.bytes == 0) router[request.peer]->release(request);
    finish_segment(step);
    moved = true;
  }
  while (run.issued < run.segments && run.issued - run.finished < run.slots) {
    const uint64_t begin = run.issued * run.segment_bytes;
    const uint64_t bytes = segment_size(step, run.issued);
    if (!has_turn(step) || !ready(step, begin + bytes)) break;
    Slot& segment = slot(run, run.issued);
    collect_pieces(s.destination, s.logical_first, begin, bytes, segment.write);
    RecvRequest& request = segment.receives[0];
    request.peer = phase_.peers[s.peer];
    request.tag = tag(step, s.message, begin);
    request.pieces = segment.write;
    request.bytes = bytes;
    if (!TRY(router[request.peer]->post_recv(request))) break;
    ++run.issued;
    moved = true;
  }
  return moved;
}

// Gives work away, or does it. The user's function may take any time. Without a queue nothing else of this rank moves
// meanwhile, but other threads can report that it runs.
Status PhaseRun::submit(WorkSlot& slot, Router router) {
  Work& work = slot.work;
  work.destination = slot.write;
  work.sources = slot.sources;
  work.touched = touched_;
  if (router.work != nullptr) {
    if (work.kind == WorkKind::kFold) ++folds_;
    router.work->submit(work);
    return {};
  }
  work.state = WorkState::kDone;
  if (work.kind != WorkKind::kFold) return do_work(work);
  in_user_function_ = true;
  Status folded;
  {
    const ProgressLock::Loan lent(*router.lock);
    folded = do_work(work);
  }
  in_user_function_ = false;
  return folded;
}

// Whether the work is done. Its failure is an error.
Result<bool> PhaseRun::take_result(Work& work) {
  if (work.state != WorkState::kDone) return false;
  if (work.kind == WorkKind::kFold && folds_ != 0) --folds_;
  if (!work.result.ok()) return std::exchange(work.result, Status{}).error();
  return true;
}

void PhaseRun::count_submitted(uint32_t step) {
  StepRun& run = steps_[step];
  run.submitted_bytes += segment_size(step, run.submitted);
  ++run.submitted;
}

Status PhaseRun::submit_copy(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  const uint64_t begin = run.submitted * run.segment_bytes;
  WorkSlot& slot = work_slot(run, run.submitted);
  slot.work.kind = WorkKind::kCopy;
  slot.work.bytes = segment_size(step, run.submitted);
  if (data_) {
    collect_pieces(plan_.sources[s.first_source].blocks, s.logical_first, begin, slot.work.bytes, slot.read[0]);
    collect_pieces(s.destination, s.logical_first, begin, slot.work.bytes, slot.write);
    slot.sources[0] = slot.read[0];
  }
  TRY(submit(slot, router));
  ++run.issued;
  count_submitted(step);
  return {};
}

Result<bool> PhaseRun::finish_copied(uint32_t step) {
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.submitted && TRY(take_result(work_slot(run, run.finished).work))) {
    finish_segment(step);
    moved = true;
  }
  return moved;
}

// Long copies go on in the next round, so that messages move meanwhile: links would stand still, and peers would wait.
Result<bool> PhaseRun::advance_copy(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = TRY(finish_copied(step));
  while (run.submitted < run.segments && *router.copy_left != 0 && run.submitted - run.finished < run.works &&
         ready(step, run.submitted * run.segment_bytes + segment_size(step, run.submitted))) {
    const uint64_t bytes = segment_size(step, run.submitted);
    TRY(submit_copy(step, router));
    TRY(finish_copied(step));
    *router.copy_left -= std::min(*router.copy_left, bytes);
    moved = true;
  }
  return moved;
}

Result<bool> PhaseRun::post_receives(uint32_t step, Slot& slot, uint64_t segment, Router router) {
  const Step& s = plan_.steps[step];
  if (s.kind == StepKind::kRecv) return post_receive(step, slot, {s.peer, {}, s.message}, segment, router);
  uint32_t index = 0;
  for (uint32_t i = 0; i < s.sources; ++i) {
    const Source& source = plan_.sources[s.first_source + i];
    if (!is_peer_source(source)) continue;
    if (index++ < slot.posted) continue;
    if (!TRY(post_receive(step, slot, source, segment, router))) return false;
  }
  return true;
}

// Posts the next receive of a segment: for a view, or into its bounce. It counts when the transport has taken it.
Result<bool> PhaseRun::post_receive(uint32_t step, Slot& slot, const Source& source, uint64_t segment, Router router) {
  RecvRequest& request = slot.receives[slot.posted];
  request.peer = phase_.peers[source.peer];
  request.tag = tag(step, source.message, segment * steps_[step].segment_bytes);
  request.pieces =
      bounces_ == nullptr ? std::span<const Piece>() : bounce_for_receive(step, slot, source.peer, segment);
  request.bytes = slot.bytes;
  if (!TRY(router[request.peer]->post_recv(request))) return false;
  ++slot.posted;
  if (!request.pieces.empty()) ++slot.bounced;
  return true;
}

// Also a Recv of a phase on a device, whose work is a copy.
Result<bool> PhaseRun::advance_reduce(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = TRY(finish_reduced(step, router));
  // The receives need none of this rank's data. They are posted ahead, so that senders are cleared in time.
  for (bool room = true; room;) {
    while (run.issued < run.segments && run.issued - run.finished < run.slots && has_turn(step)) {
      Slot& segment = slot(run, run.issued);
      segment.bytes = segment_size(step, run.issued);
      if (!TRY(post_receives(step, segment, run.issued, router))) break;
      ++run.issued;
      moved = true;
    }
    room = false;
    while (run.submitted < run.issued && run.submitted - run.finished < run.works && arrived(step)) {
      TRY(plan_.steps[step].kind == StepKind::kRecv ? submit_copy_in(step, router) : submit_reduce(step, router));
      moved = true;
      room |= TRY(finish_reduced(step, router));
    }
  }
  return moved;
}

// Whether all sources of the oldest segment that was not submitted are there.
bool PhaseRun::arrived(uint32_t step) {
  const StepRun& run = steps_[step];
  const Slot& segment = slot(run, run.submitted);
  for (const RecvRequest& request : segment.receives) {
    if (request.state != RequestState::kDone) return false;
  }
  return ready(step, run.submitted * run.segment_bytes + segment.bytes);
}

Status PhaseRun::submit_reduce(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  const StepRun& run = steps_[step];
  const uint64_t begin = run.submitted * run.segment_bytes;
  const Slot& segment = slot(run, run.submitted);
  WorkSlot& at = work_slot(run, run.submitted);
  at.work.kind = user_ == nullptr || segment.bytes == 0 ? WorkKind::kReduce : WorkKind::kFold;
  at.work.bytes = segment.bytes;
  at.work.source_count = s.sources;
  at.work.spec = spec_;
  if (phase_.sums != nullptr) {
    at.work.spec.average_over = ranks_;
    at.work.spec.sums = phase_.sums->data() + s.first_source;
  }
  at.work.reduce = reduce_;
  at.work.user = user_;
  at.write.clear();
  uint32_t peer_index = 0;
  for (uint32_t i = 0; i < s.sources && data_; ++i) {
    const Source& source = plan_.sources[s.first_source + i];
    if (is_peer_source(source)) {
      at.sources[i] = received(segment.receives[peer_index++], at.read[i]);
    } else {
      collect_pieces(source.blocks, s.logical_first, begin, segment.bytes, at.read[i]);
      at.sources[i] = at.read[i];
    }
  }
  if (data_) collect_pieces(s.destination, s.logical_first, begin, segment.bytes, at.write);
  TRY(submit(at, router));
  count_submitted(step);
  return {};
}

// Ends the segments whose work is done, and releases their messages.
Result<bool> PhaseRun::finish_reduced(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.submitted && TRY(take_result(work_slot(run, run.finished).work))) {
    Slot& segment = slot(run, run.finished);
    for (RecvRequest& request : segment.receives) {
      router.statistics->received(request.peer, request.bytes);
      request.read = work_slot(run, run.finished).work.ended;
      // A message of no bytes has no pieces, so the transport treats it as a view.
      if (is_view(request)) router[request.peer]->release(request);
      request.state = RequestState::kIdle;
    }
    segment.posted = segment.bounced = 0;
    finish_segment(step);
    moved = true;
  }
  return moved;
}

void PhaseRun::scale_first(const Region& unscaled, const void* factor) {
  unscaled_ = &unscaled;
  factor_ = factor;
  whole_.work.state = WorkState::kIdle;
  part_ = Part::kScaling;
}

// The work of the whole phase, from pieces in `from` (nullptr: where they are themselves) to the same places.
void PhaseRun::collect_whole(const BlockTable& table, const Region* from) {
  whole_.write.clear();
  whole_.read.resize(1);
  whole_.read[0].clear();
  whole_.work.bytes = 0;
  for (const PieceRef& piece : table.pieces) {
    const Region& to = region(piece.buffer);
    const Region& source = from != nullptr ? *from : to;
    whole_.write.push_back({to.base + piece.offset, piece.bytes, &to});
    whole_.read[0].push_back({source.base + piece.offset, piece.bytes, &source});
    whole_.work.bytes += piece.bytes;
  }
  whole_.sources.assign(1, whole_.read[0]);
  whole_.work.spec = spec_;
}

// The first phase of a pre-multiplied sum reads its send buffer only.
Status PhaseRun::submit_scaling(Router router) {
  collect_whole(phase_.input, unscaled_);
  whole_.work.kind = WorkKind::kScale;
  whole_.work.factor = factor_;
  return submit(whole_, router);
}

Status PhaseRun::submit_averaging(Router router) {
  collect_whole(phase_.output, nullptr);
  whole_.work.kind = WorkKind::kReduce;
  whole_.work.spec.average_over = ranks_;
  whole_.work.reduce = reduce_;
  return submit(whole_, router);
}

}  // namespace trestle
