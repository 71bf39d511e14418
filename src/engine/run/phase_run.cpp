#include "engine/run/phase_run.h"

#include <algorithm>

#include "kernels/copy.h"
#include "sched/model/segments.h"

namespace trestle {

namespace {

bool is_peer_source(const Source& source) {
  return source.peer != kLocal;
}

// Walks several lists of pieces in parallel, one contiguous run at a time.
class Cursor {
 public:
  explicit Cursor(std::span<const ConstPiece> pieces) : pieces_(pieces) {}
  const std::byte* data() const { return pieces_[index_].data + offset_; }
  uint64_t run() const { return pieces_[index_].bytes - offset_; }
  void skip(uint64_t bytes) {
    offset_ += bytes;
    if (offset_ == pieces_[index_].bytes && index_ + 1 < pieces_.size()) {
      ++index_;
      offset_ = 0;
    }
  }

 private:
  std::span<const ConstPiece> pieces_;
  size_t index_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

PhaseRun::PhaseRun(const PreparedPhase& phase, const Prepared& prepared, const Statistics& statistics)
    : phase_(phase),
      plan_(*phase.plan),
      user_(is_user_defined(prepared.op) ? prepared.custom.get() : nullptr),
      reduce_(find_own_reduce(prepared.type, prepared.op)),
      spec_{prepared.type, prepared.op, 0, false},
      element_bytes_(static_cast<uint32_t>(size_of(prepared.type))),
      ranks_(static_cast<uint32_t>(prepared.ranks)),
      data_(prepared.data),
      check_(prepared.check),
      tells_sizes_(has_pairwise_blocks(plan_.kind) || plan_.kind == PhaseKind::kSend ||
                   plan_.kind == PhaseKind::kRecv) {
  uint32_t slots = 0;
  size_t most_sources = 0;
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    StepRun run;
    const uint64_t bytes = phase_.step_bytes[s];
    run.segment_bytes = phase_.step_segment_bytes[s];
    run.segments = segments_of(bytes, run.segment_bytes);
    run.first_slot = slots;
    run.slots = static_cast<uint32_t>(std::min<uint64_t>(run.segments, prepared.segments_in_flight));
    slots += run.slots;
    steps_.push_back(run);
    most_sources = std::max<size_t>(most_sources, plan_.steps[s].sources);
  }
  slots_.resize(slots);
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    const auto* sources = plan_.sources.data() + step.first_source;
    const auto receives =
        step.kind == StepKind::kRecv ? 1 : std::count_if(sources, sources + step.sources, is_peer_source);
    for (uint32_t i = 0; i < steps_[s].slots; ++i) slots_[steps_[s].first_slot + i].receives.resize(receives);
  }
  for (const Step& step : plan_.steps) {
    const bool sends_or_receives = step.kind == StepKind::kSend || step.kind == StepKind::kRecv;
    if (sends_or_receives) dimensions_ |= statistics.dimension_bit(phase_.peers[step.peer]);
  }
  for (const Source& source : plan_.sources) {
    if (is_peer_source(source)) dimensions_ |= statistics.dimension_bit(phase_.peers[source.peer]);
  }
  operands_.resize(most_sources + 1);
  active_.reserve(steps_.size());
}

void PhaseRun::start(const Buffers& buffers, uint64_t number, uint32_t phase_number, uint32_t turn, bool* touched) {
  buffers_ = buffers;
  number_ = number;
  phase_number_ = phase_number;
  turn_ = turn;
  started_ = true;
  active_.clear();
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    steps_[s].issued = steps_[s].finished = steps_[s].done_bytes = 0;
    active_.push_back(s);
  }
  for (Slot& slot : slots_) {
    slot.posted = 0;
    slot.send.touched = touched;
    for (RecvRequest& receive : slot.receives) receive.touched = touched;
  }
  if (active_.empty()) average_output();
}

Result<bool> PhaseRun::advance(Router router) {
  bool moved = false;
  size_t kept = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    const uint32_t step = active_[i];
    Result<bool> result = advance_step(step, router);
    if (!result.ok()) return result;
    moved |= result.value();
    if (!is_complete(step)) active_[kept++] = step;
  }
  active_.resize(kept);
  if (moved && active_.empty()) average_output();
  return moved;
}

Result<bool> PhaseRun::advance_step(uint32_t step, Router router) {
  switch (plan_.steps[step].kind) {
    case StepKind::kSend:
      return advance_send(step, router);
    case StepKind::kRecv:
      return advance_recv(step, router);
    case StepKind::kCopy:
      return advance_copy(step);
    case StepKind::kReduce:
      return advance_reduce(step, router);
  }
  return false;
}

// Whether bytes [0, upto) of the step may proceed.
bool PhaseRun::ready(uint32_t step, uint64_t upto) const {
  const Step& s = plan_.steps[step];
  for (uint32_t d = 0; d < s.dependencies; ++d) {
    const ByteDependency& dependency = phase_.dependencies[s.first_dependency + d];
    if (is_complete(dependency.step)) continue;
    const bool no_bytes = phase_.step_bytes[step] == 0 || phase_.step_bytes[dependency.step] == 0;
    if (no_bytes) return false;
    if (upto <= dependency.my_begin) continue;
    const uint64_t needed = dependency.its_begin + std::min(upto, dependency.my_end) - dependency.my_begin;
    if (steps_[dependency.step].done_bytes < needed) return false;
  }
  return true;
}

uint64_t PhaseRun::segment_size(uint32_t step, uint64_t segment) const {
  const uint64_t segment_bytes = steps_[step].segment_bytes;
  return std::min(segment_bytes, phase_.step_bytes[step] - segment * segment_bytes);
}

void PhaseRun::finish_segment(uint32_t step) {
  StepRun& run = steps_[step];
  run.done_bytes += segment_size(step, run.finished);
  ++run.finished;
}

MessageTag PhaseRun::tag(uint32_t step, uint32_t message, uint64_t offset) const {
  return {number_, phase_number_, message, offset, check_, tells_sizes_ ? phase_.step_bytes[step] : 0};
}

// Bytes [begin, begin+bytes) of a step's operand as pieces of memory, neighbours joined.
template <class P>
void PhaseRun::collect_pieces(const BlockRange& range, uint32_t logical_first, uint64_t begin, uint64_t bytes,
                              std::vector<P>& pieces) const {
  pieces.clear();
  if (!data_) {  // one null piece stands for all: the transport sees that this is no view
    if (bytes != 0) pieces.push_back({nullptr, bytes});
    return;
  }
  const auto add = [&pieces](std::byte* data, uint64_t size) {
    if (!pieces.empty() && pieces.back().data + pieces.back().bytes == data) {
      pieces.back().bytes += size;
    } else {
      pieces.push_back({data, size});
    }
  };
  for (uint32_t i = 0; i < range.count && bytes != 0; ++i) {
    const bool received = range.space == Space::kOutput && !phase_.received_bytes.empty();
    const uint64_t block_bytes =
        received ? phase_.received_bytes[range.first + i] : phase_.logical_bytes[logical_first + i];
    if (begin >= block_bytes) {
      begin -= block_bytes;
      continue;
    }
    if (range.space == Space::kScratch) {
      const uint64_t take = std::min(block_bytes - begin, bytes);
      add(buffers_[static_cast<size_t>(BufferId::kStaging)] + phase_.scratch_offset +
              (range.first + i) * phase_.scratch_stride + begin,
          take);
      bytes -= take;
      begin = 0;
      continue;
    }
    const BlockTable& table = range.space == Space::kInput ? phase_.input : phase_.output;
    for (uint32_t p = table.first[range.first + i]; p < table.first[range.first + i + 1] && bytes != 0; ++p) {
      const PieceRef& piece = table.pieces[p];
      if (begin >= piece.bytes) {
        begin -= piece.bytes;
        continue;
      }
      const uint64_t take = std::min(piece.bytes - begin, bytes);
      add(buffers_[static_cast<size_t>(piece.buffer)] + piece.offset + begin, take);
      bytes -= take;
      begin = 0;
    }
  }
  CHECK(bytes == 0, "a step's operand is shorter than its bytes");
}

Result<bool> PhaseRun::advance_send(uint32_t step, Router router) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.issued && slot(run, run.finished).send.state == RequestState::kDone) {
    finish_segment(step);
    moved = true;
  }
  while (run.issued < run.segments && run.issued - run.finished < run.slots) {
    const uint64_t begin = run.issued * run.segment_bytes;
    const uint64_t bytes = segment_size(step, run.issued);
    if (!ready(step, begin + bytes)) break;
    Slot& segment = slot(run, run.issued);
    collect_pieces(plan_.sources[s.first_source].blocks, s.logical_first, begin, bytes, segment.read);
    segment.send.peer = phase_.peers[s.peer];
    segment.send.tag = tag(step, s.message, begin);
    segment.send.turn = turn_;
    segment.send.pieces = segment.read;
    segment.send.bytes = bytes;
    segment.send.step = step;
    segment.send.mapped = false;
    if (!TRY(router[segment.send.peer]->post_send(segment.send))) break;
    router.statistics->sent(segment.send.peer, bytes, segment.send.mapped);
    ++run.issued;
    moved = true;
    while (run.finished < run.issued && slot(run, run.finished).send.state == RequestState::kDone) finish_segment(step);
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
    if (!ready(step, begin + bytes)) break;
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

Result<bool> PhaseRun::advance_copy(uint32_t step) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_[step];
  bool moved = false;
  while (run.finished < run.segments) {
    const uint64_t begin = run.finished * run.segment_bytes;
    const uint64_t bytes = segment_size(step, run.finished);
    if (!ready(step, begin + bytes)) break;
    collect_pieces(plan_.sources[s.first_source].blocks, s.logical_first, begin, bytes, operands_[0]);
    Slot& segment = slot(run, 0);
    collect_pieces(s.destination, s.logical_first, begin, bytes, segment.write);
    Cursor from(operands_[0]);
    if (!data_) segment.write.clear();
    for (const Piece& piece : segment.write) {
      for (uint64_t at = 0; at < piece.bytes;) {
        const uint64_t take = std::min(piece.bytes - at, from.run());
        copy(piece.data + at, from.data(), take, false);
        from.skip(take);
        at += take;
      }
    }
    ++run.issued;
    finish_segment(step);
    moved = true;
  }
  return moved;
}

Result<bool> PhaseRun::post_receives(uint32_t step, Slot& slot, uint64_t segment, Router router) {
  const Step& s = plan_.steps[step];
  uint32_t index = 0;
  for (uint32_t i = 0; i < s.sources; ++i) {
    const Source& source = plan_.sources[s.first_source + i];
    if (!is_peer_source(source)) continue;
    if (index++ < slot.posted) continue;
    RecvRequest& request = slot.receives[index - 1];
    request.peer = phase_.peers[source.peer];
    request.tag = tag(step, source.message, segment * steps_[step].segment_bytes);
    request.pieces = {};
    request.bytes = slot.bytes;
    if (!TRY(router[request.peer]->post_recv(request))) return false;
    ++slot.posted;
  }
  return true;
}

Result<bool> PhaseRun::advance_reduce(uint32_t step, Router router) {
  StepRun& run = steps_[step];
  bool moved = false;
  // The receives need none of this rank's data. They are posted ahead, so that senders are cleared in time.
  for (bool room = true; room;) {
    while (run.issued < run.segments && run.issued - run.finished < run.slots) {
      Slot& segment = slot(run, run.issued);
      segment.bytes = segment_size(step, run.issued);
      if (!TRY(post_receives(step, segment, run.issued, router))) break;
      ++run.issued;
      moved = true;
    }
    const uint64_t before = run.finished;
    while (run.finished < run.issued && TRY(reduce_arrived(step, slot(run, run.finished), router))) {
      finish_segment(step);
    }
    room = run.finished != before;
    moved |= room;
  }
  return moved;
}

// Reduces the oldest segment if all of it has arrived, and releases its messages.
Result<bool> PhaseRun::reduce_arrived(uint32_t step, Slot& segment, Router router) {
  const StepRun& run = steps_[step];
  for (const RecvRequest& request : segment.receives) {
    if (request.state != RequestState::kDone) return false;
  }
  if (!ready(step, run.finished * run.segment_bytes + segment.bytes)) return false;
  TRY(reduce_segment(step, segment, run.finished, router));
  for (RecvRequest& request : segment.receives) {
    router.statistics->received(request.peer, request.bytes);
    router[request.peer]->release(request);
    request.state = RequestState::kIdle;
  }
  segment.posted = 0;
  return true;
}

// The user's function may take any time. Nothing else of this rank moves meanwhile, but other threads can report that
// it runs.
Status PhaseRun::fold(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, Router router) {
  in_user_function_ = true;
  Status folded;
  {
    const ProgressLock::Loan lent(*router.lock);
    folded = user_->fold(dst, sources, elements, spec_.type);
  }
  in_user_function_ = false;
  return folded;
}

Status PhaseRun::reduce_segment(uint32_t step, Slot& slot, uint64_t segment, Router router) {
  if (slot.bytes == 0 || !data_) return {};
  const Step& s = plan_.steps[step];
  const uint64_t begin = segment * steps_[step].segment_bytes;
  std::array<const std::byte*, 64> few;
  std::vector<const std::byte*> many;
  std::span<const std::byte*> sources(few.data(), std::min<size_t>(few.size(), s.sources));
  if (s.sources > few.size()) {
    many.resize(s.sources);
    sources = many;
  }
  std::vector<Cursor> cursors;
  cursors.reserve(s.sources);
  uint32_t peer_index = 0;
  for (uint32_t i = 0; i < s.sources; ++i) {
    const Source& source = plan_.sources[s.first_source + i];
    if (is_peer_source(source)) {
      cursors.emplace_back(slot.receives[peer_index++].view);
    } else {
      collect_pieces(source.blocks, s.logical_first, begin, slot.bytes, operands_[i]);
      cursors.emplace_back(operands_[i]);
    }
  }
  collect_pieces(s.destination, s.logical_first, begin, slot.bytes, slot.write);
  for (const Piece& piece : slot.write) {
    for (uint64_t at = 0; at < piece.bytes;) {
      uint64_t take = piece.bytes - at;
      for (const Cursor& cursor : cursors) take = std::min(take, cursor.run());
      CHECK(take % element_bytes_ == 0, "a transport cut a view inside an element");
      for (uint32_t i = 0; i < s.sources; ++i) sources[i] = cursors[i].data();
      if (user_ == nullptr) {
        reduce_(piece.data + at, sources, take / element_bytes_, spec_);
      } else {
        TRY(fold(piece.data + at, sources, take / element_bytes_, router));
      }
      for (Cursor& cursor : cursors) cursor.skip(take);
      at += take;
    }
  }
  return {};
}

void PhaseRun::average_output() {
  if (!phase_.average_output || !data_) return;
  ReduceSpec divide = spec_;
  divide.average_over = ranks_;
  for (const PieceRef& piece : phase_.output.pieces) {
    std::byte* data = buffers_[static_cast<size_t>(piece.buffer)] + piece.offset;
    const std::byte* source = data;
    reduce_(data, {&source, 1}, piece.bytes / element_bytes_, divide);
  }
}

// The rank whose transport has not taken the step's next message. Usually the link with that rank is still being made,
// which takes both ranks. -1: the step waits for something else.
int32_t PhaseRun::refused_by(uint32_t step) const {
  const StepRun& run = steps_[step];
  const Step& s = plan_.steps[step];
  if (s.kind == StepKind::kCopy || run.issued == run.segments || run.issued - run.finished == run.slots) return -1;
  if (s.kind == StepKind::kReduce) {
    uint32_t posted = slots_[run.first_slot + run.issued % run.slots].posted;
    for (uint32_t i = 0; i < s.sources; ++i) {
      const Source& source = plan_.sources[s.first_source + i];
      if (is_peer_source(source) && posted-- == 0) return phase_.peers[source.peer];
    }
    return -1;
  }
  if (!ready(step, run.issued * run.segment_bytes + segment_size(step, run.issued))) return -1;
  return phase_.peers[s.peer];
}

// A missing message tells more than one that was not taken, so missing messages come first.
PhaseRun::Awaited PhaseRun::first_awaited() const {
  Awaited untaken;
  for (uint32_t index : active_) {
    const StepRun& run = steps_[index];
    const bool sends = plan_.steps[index].kind == StepKind::kSend;
    if (run.finished != run.issued) {
      const Slot& slot = slots_[run.first_slot + run.finished % run.slots];
      if (sends && untaken.run == nullptr) untaken = {&run, nullptr, &slot.send, -1};
      for (const RecvRequest& request : slot.receives) {
        if (request.state == RequestState::kPending) return {&run, &request, nullptr, -1};
      }
    }
    if (untaken.run != nullptr) continue;
    const int32_t link = refused_by(index);
    if (link >= 0) untaken = {&run, nullptr, nullptr, link};
  }
  return untaken;
}

int32_t PhaseRun::awaited_rank() const {
  if (in_user_function_) return -1;
  const Awaited awaited = first_awaited();
  if (awaited.receive != nullptr) return awaited.receive->peer;
  return awaited.send != nullptr ? awaited.send->peer : awaited.link;
}

std::string PhaseRun::awaited() const {
  const Awaited awaited = first_awaited();
  if (awaited.run == nullptr) return "its own steps";
  const std::string segment =
      " (segment " + std::to_string(awaited.run->finished + 1) + " of " + std::to_string(awaited.run->segments) + ")";
  if (awaited.link >= 0)
    return "the link with rank " + std::to_string(awaited.link) + ", which takes no message yet" + segment;
  if (awaited.send != nullptr)
    return "rank " + std::to_string(awaited.send->peer) + " to take message " +
           std::to_string(awaited.send->tag.message) + segment;
  return "message " + std::to_string(awaited.receive->tag.message) + " of rank " +
         std::to_string(awaited.receive->peer) + segment;
}

}  // namespace trestle
