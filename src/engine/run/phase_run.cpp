#include "engine/run/phase_run.h"

#include <algorithm>

#include "sched/model/segments.h"

namespace trestle {

PhaseRun::PhaseRun(const PreparedPhase& phase, const Prepared& prepared, const Statistics& statistics, bool queued,
                   FreeBounces* bounces)
    : phase_(phase),
      plan_(*phase.plan),
      user_(is_user_defined(prepared.op) ? prepared.custom.get() : nullptr),
      reduce_(find_own_reduce(prepared.type, prepared.op)),
      spec_{prepared.type, prepared.op, 0, false},
      ranks_(static_cast<uint32_t>(prepared.ranks)),
      data_(prepared.data),
      check_(prepared.check),
      window_(phase.segments_in_flight),
      tells_sizes_(has_pairwise_blocks(plan_.kind) || plan_.kind == PhaseKind::kSend || plan_.kind == PhaseKind::kRecv),
      bounces_(bounces != nullptr ? std::unique_ptr<Bounces>(new Bounces{*bounces}) : nullptr) {
  steps_.reserve(plan_.steps.size());
  for (uint32_t s = 0; s < plan_.steps.size(); ++s) add_step_slots(s, window_, queued);
  for (const Step& step : plan_.steps) {
    if (is_message(step)) dimensions_ |= statistics.dimension_bit(phase_.peers[step.peer]);
  }
  for (const Source& source : plan_.sources) {
    if (is_peer_source(source)) dimensions_ |= statistics.dimension_bit(phase_.peers[source.peer]);
  }
  active_.reserve(steps_.size());
}

// Work that is done at once needs one slot per step, whatever the number of segments in flight.
void PhaseRun::add_step_slots(uint32_t step, uint32_t in_flight, bool queued) {
  const Step& s = plan_.steps[step];
  StepRun& run = steps_.emplace_back();
  run.segment_bytes = phase_.step_segment_bytes[step];
  run.segments = segments_of(phase_.step_bytes[step], run.segment_bytes);
  run.slots = static_cast<uint32_t>(std::min<uint64_t>(run.segments, in_flight));
  if (bounces_ != nullptr && !is_beside(step)) run.slots = phase_.bounces[step].slots;
  run.first_slot = static_cast<uint32_t>(slots_.size());
  if (s.kind != StepKind::kCopy) {
    const auto* sources = plan_.sources.data() + s.first_source;
    const auto receives = s.kind == StepKind::kRecv ? 1 : std::count_if(sources, sources + s.sources, is_peer_source);
    slots_.resize(slots_.size() + run.slots);
    for (uint32_t i = 0; i < run.slots; ++i) slots_[run.first_slot + i].receives.resize(receives);
    for (uint32_t i = 0; i < run.slots && bounces_ != nullptr; ++i) slots_[run.first_slot + i].write.resize(receives);
  }
  if (!has_work(step)) return;
  run.works = queued ? run.slots : 1;
  run.first_work = static_cast<uint32_t>(works_.size());
  works_.resize(works_.size() + run.works);
  for (uint32_t i = 0; i < run.works && data_; ++i) {
    works_[run.first_work + i].read.resize(std::max<size_t>(s.sources, 1));
    works_[run.first_work + i].sources.resize(std::max<size_t>(s.sources, 1));
  }
}

void PhaseRun::start(const Buffers& buffers, uint64_t number, uint32_t phase_number, uint32_t turn, bool* touched) {
  buffers_ = &buffers;
  number_ = number;
  phase_number_ = phase_number;
  turn_ = turn;
  touched_ = touched;
  part_ = Part::kSteps;
  if (bounces_ != nullptr) take_bounces();
  folds_ = 0;
  active_.clear();
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    steps_[s].issued = steps_[s].submitted = steps_[s].finished = 0;
    steps_[s].submitted_bytes = steps_[s].done_bytes = 0;
    steps_[s].rooms = 0;
    active_.push_back(s);
  }
  for (Slot& slot : slots_) {
    slot.posted = slot.bounced = 0;
    slot.send.touched = touched;
    for (RecvRequest& receive : slot.receives) receive.touched = touched;
  }
}

Result<bool> PhaseRun::advance(Router router) {
  bool moved = false;
  for (Part before = Part::kIdle; before != part_ && part_ != Part::kComplete;) {
    before = part_;
    moved |= TRY(advance_part(router));
  }
  return moved;
}

// True if anything moved. The part after this one is tried at once.
Result<bool> PhaseRun::advance_part(Router router) {
  switch (part_) {
    case Part::kScaling:
      if (whole_.work.state == WorkState::kIdle) TRY(submit_scaling(router));
      if (!TRY(take_result(whole_.work))) return false;
      part_ = Part::kSteps;
      return true;
    case Part::kSteps: {
      const bool moved = TRY(advance_steps(router));
      if (!active_.empty()) return moved;
      whole_.work.state = WorkState::kIdle;
      if (bounces_ != nullptr) give_bounces_back();
      part_ = phase_.average_output ? Part::kAveraging : Part::kComplete;
      return true;
    }
    case Part::kAveraging:
      if (whole_.work.state == WorkState::kIdle) TRY(submit_averaging(router));
      if (!TRY(take_result(whole_.work))) return false;
      part_ = Part::kComplete;
      return true;
    case Part::kIdle:
    case Part::kComplete:
      return false;
  }
  return false;
}

Result<bool> PhaseRun::advance_steps(Router router) {
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
  return moved;
}

Result<bool> PhaseRun::advance_step(uint32_t step, Router router) {
  switch (plan_.steps[step].kind) {
    case StepKind::kSend:
      return has_work(step) ? advance_bounced_send(step, router) : advance_send(step, router);
    case StepKind::kRecv:
      return bounces_ == nullptr ? advance_recv(step, router) : advance_reduce(step, router);
    case StepKind::kCopy:
      return advance_copy(step, router);
    case StepKind::kReduce:
      return advance_reduce(step, router);
  }
  return false;
}

// Whether bytes [0, upto) of the step may proceed. Work follows other work as soon as that was submitted, because the
// queue keeps its order. A message waits until work is done, and work waits for messages, also for those that peers
// read in place.
bool PhaseRun::ready(uint32_t step, uint64_t upto, bool is_work) const {
  const Step& s = plan_.steps[step];
  for (uint32_t d = 0; d < s.dependencies; ++d) {
    const ByteDependency& dependency = phase_.dependencies[s.first_dependency + d];
    const StepRun& other = steps_[dependency.step];
    const bool in_order = is_work && has_work(dependency.step) && !is_beside(dependency.step);
    if ((in_order ? other.submitted : other.finished) == other.segments) continue;
    const bool no_bytes = phase_.step_bytes[step] == 0 || phase_.step_bytes[dependency.step] == 0;
    if (no_bytes) return false;
    if (upto <= dependency.my_begin) continue;
    if ((in_order ? other.submitted_bytes : other.done_bytes) < dependency.needed(upto)) return false;
  }
  return true;
}

// Whether it is the turn of the step's next segment (StepBounce::before, Step::after). Two messages of a row
// of turns are under way, and more where they are too short to keep the link busy, but with two peers at most. Their
// segments together are no more than those of one message.
bool PhaseRun::has_turn(uint32_t step) const {
  if (bounces_ != nullptr && !is_beside(step) && !has_room(step)) return false;
  uint32_t before = plan_.steps[step].after;
  if (before == kNoStep) return true;
  const StepRun& mine = steps_[step];
  if (steps_[before].issued != steps_[before].segments) return false;
  uint64_t segments = std::max(mine.issued, mine.submitted) - mine.finished;
  uint64_t messages = 1;
  uint64_t bytes = 0;
  int32_t peer = plan_.steps[step].peer;
  for (uint32_t changes = 0; before != kNoStep; before = plan_.steps[before].after) {
    if (plan_.steps[before].peer != peer && ++changes > 2) break;  // they ended before the last peer's turn began
    peer = plan_.steps[before].peer;
    if (is_complete(before)) continue;
    if (changes == 2) return false;
    segments += steps_[before].issued - steps_[before].finished;
    bytes += phase_.step_bytes[before] - steps_[before].done_bytes;
    ++messages;
  }
  return segments < window_ && (messages <= 2 || bytes < phase_.turn_bytes);
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
  const auto add = [&pieces](const Region& region, uint64_t offset, uint64_t size) {
    std::byte* const data = region.base + offset;
    if (!pieces.empty() && pieces.back().region == &region && pieces.back().data + pieces.back().bytes == data) {
      pieces.back().bytes += size;
    } else {
      pieces.push_back({data, size, &region});
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
      add(region(BufferId::kStaging), phase_.scratch_offset + (range.first + i) * phase_.scratch_stride + begin, take);
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
      add(region(piece.buffer), piece.offset + begin, take);
      bytes -= take;
      begin = 0;
    }
  }
  CHECK(bytes == 0, "a step's operand is shorter than its bytes");
}
template void PhaseRun::collect_pieces(const BlockRange&, uint32_t, uint64_t, uint64_t, std::vector<Piece>&) const;
template void PhaseRun::collect_pieces(const BlockRange&, uint32_t, uint64_t, uint64_t, std::vector<ConstPiece>&) const;

}  // namespace trestle
