// Messages: the k-th message from a to b in a's plan order is the k-th in b's, and both name the same logical blocks.
#include "plan/checker_parts.h"

namespace trestle::checking {

namespace {

// One end of a message: the step and, for a reduce, the source that takes it.
struct End {
  uint32_t step = 0;
  uint32_t source = 0;
  bool of_source = false;
};

struct Ends {
  std::vector<std::vector<End>> sends;     // by peer, in plan order
  std::vector<std::vector<End>> receives;  // by peer, in plan order
};

Status add_end(const Plan& plan, std::vector<std::vector<End>>& ends, int32_t peer, uint32_t message, const End& end) {
  std::vector<End>& list = ends[static_cast<size_t>(peer)];
  if (message != list.size()) {
    return fault(step_name(plan, end.step) + " numbers a message with rank " + std::to_string(peer) + " as " +
                 std::to_string(message) + "; in plan order it is number " + std::to_string(list.size()));
  }
  list.push_back(end);
  return {};
}

Result<Ends> collect(const Plan& plan) {
  Ends ends;
  ends.sends.resize(static_cast<size_t>(plan.group_size));
  ends.receives.resize(static_cast<size_t>(plan.group_size));
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == StepKind::kSend) TRY(add_end(plan, ends.sends, step.peer, step.message, {i, 0, false}));
    if (step.kind == StepKind::kRecv) TRY(add_end(plan, ends.receives, step.peer, step.message, {i, 0, false}));
    if (step.kind != StepKind::kReduce) continue;
    for (uint32_t s = step.first_source; s < step.first_source + step.sources; ++s) {
      const Source& source = plan.sources[s];
      if (source.peer != kLocal) TRY(add_end(plan, ends.receives, source.peer, source.message, {i, s, true}));
    }
  }
  return ends;
}

std::string logical_name(const Step& step) {
  if (step.blocks == 1) return "logical block " + std::to_string(step.logical_first);
  return "logical blocks " + std::to_string(step.logical_first) + ".." +
         std::to_string(step.logical_first + step.blocks - 1);
}

bool same_blocks(const Plan& from, const Step& sent, const Plan& to, const Step& taken) {
  bool same = sent.blocks == taken.blocks;
  for (uint32_t i = 0; same && i < sent.blocks; ++i) {
    same = ((sent.logical_first + i) ^ from.turned) == ((taken.logical_first + i) ^ to.turned);
  }
  return same;
}

Status check_pair(const Plan& from, const Plan& to, const std::vector<End>& sends, const std::vector<End>& receives) {
  for (size_t k = 0; k < sends.size() && k < receives.size(); ++k) {
    const Step& sent = from.steps[sends[k].step];
    const Step& taken = to.steps[receives[k].step];
    if (!same_blocks(from, sent, to, taken)) {
      return fault(step_name(to, receives[k].step) + " expects " + logical_name(taken) + " in message " +
                   std::to_string(k) + " of rank " + std::to_string(from.me) + ", but " +
                   step_name(from, sends[k].step) + " sends " + logical_name(sent));
    }
  }
  if (sends.size() > receives.size()) {
    return fault(step_name(from, sends[receives.size()].step) + " sends message " + std::to_string(receives.size()) +
                 ", which rank " + std::to_string(to.me) + " never receives");
  }
  if (receives.size() > sends.size()) {
    return fault(step_name(to, receives[sends.size()].step) + " waits for message " + std::to_string(sends.size()) +
                 " of rank " + std::to_string(from.me) + ", which is never sent");
  }
  return {};
}

}  // namespace

Result<std::vector<Matches>> match_messages(const std::vector<Plan>& plans) {
  std::vector<Ends> ends;
  std::vector<Matches> matches(plans.size());
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    ends.push_back(TRY(collect(plans[rank])));
    matches[rank].receiver.resize(plans[rank].steps.size());
    matches[rank].sender.resize(plans[rank].steps.size());
    matches[rank].sender_of_source.resize(plans[rank].sources.size());
  }
  for (size_t a = 0; a < plans.size(); ++a) {
    for (size_t b = 0; b < plans.size(); ++b) {
      const std::vector<End>& sends = ends[a].sends[b];
      const std::vector<End>& receives = ends[b].receives[a];
      TRY(check_pair(plans[a], plans[b], sends, receives));
      for (size_t k = 0; k < sends.size(); ++k) {
        matches[a].receiver[sends[k].step] = receives[k].step;
        if (receives[k].of_source) {
          matches[b].sender_of_source[receives[k].source] = sends[k].step;
        } else {
          matches[b].sender[receives[k].step] = sends[k].step;
        }
      }
    }
  }
  return matches;
}

}  // namespace trestle::checking
