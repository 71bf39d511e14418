// What a phase waits for, for error messages and inquiries.
#include <algorithm>

#include "engine/run/phase_run.h"

namespace trestle {

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
  if (has_work(step) && !is_beside(step)) {
    const bool posts = s.kind == StepKind::kSend ? run.issued != run.submitted : has_turn(step);
    return posts ? phase_.peers[s.peer] : -1;
  }
  if (!has_turn(step) || !ready(step, run.issued * run.segment_bytes + segment_size(step, run.issued), false))
    return -1;
  return phase_.peers[s.peer];
}

bool PhaseRun::at_work(uint32_t step) const {
  const StepRun& run = steps_[step];
  const Step& s = plan_.steps[step];
  if (!has_work(step)) return false;
  if (s.kind != StepKind::kSend) return run.finished != run.submitted;
  return run.issued != run.submitted && work_slot(run, run.issued).work.state == WorkState::kSubmitted;
}

// The first step whose work was given away and is not done. Peers may wait for this work. So it is reported before the
// messages that this rank awaits, whose receives were posted ahead.
const PhaseRun::StepRun* PhaseRun::first_at_work() const {
  const auto found = std::find_if(active_.begin(), active_.end(), [this](uint32_t index) { return at_work(index); });
  return found == active_.end() ? nullptr : &steps_[*found];
}

// A message that has not arrived tells more than one that no peer has taken, so it is reported first.
PhaseRun::Awaited PhaseRun::first_awaited() const {
  Awaited untaken;
  for (uint32_t index : active_) {
    const StepRun& run = steps_[index];
    if (run.finished != run.issued && plan_.steps[index].kind != StepKind::kCopy) {
      const bool sends = plan_.steps[index].kind == StepKind::kSend;
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
  if (in_user_function() || part_ != Part::kSteps || first_at_work() != nullptr) return -1;
  const Awaited awaited = first_awaited();
  if (awaited.receive != nullptr) return awaited.receive->peer;
  return awaited.send != nullptr ? awaited.send->peer : awaited.link;
}

std::string PhaseRun::awaited() const {
  const auto segment_of = [](const StepRun& run) {
    return " (segment " + std::to_string(run.finished + 1) + " of " + std::to_string(run.segments) + ")";
  };
  if (part_ == Part::kScaling) return "its own multiplication of the input";
  if (part_ == Part::kAveraging) return "its own division of the output";
  if (const StepRun* const at_work = first_at_work()) return "its own copies and reductions" + segment_of(*at_work);
  const Awaited awaited = first_awaited();
  if (awaited.run == nullptr) return "its own steps";
  const std::string segment = segment_of(*awaited.run);
  if (awaited.link >= 0)
    return "the link with rank " + std::to_string(awaited.link) + ", which takes no message yet" + segment;
  if (awaited.send != nullptr)
    return "rank " + std::to_string(awaited.send->peer) + " to take message " +
           std::to_string(awaited.send->tag.message) + segment;
  return "message " + std::to_string(awaited.receive->tag.message) + " of rank " +
         std::to_string(awaited.receive->peer) + segment;
}

}  // namespace trestle
