#include "plan/checker.h"

#include <bit>

#include "plan/checker_parts.h"

namespace trestle {

namespace checking {

Error fault(std::string sentence) {
  return Error{Code::kInternalError, "bad plan: " + std::move(sentence)};
}

std::string step_name(const Plan& plan, uint32_t step) {
  std::string name = "rank " + std::to_string(plan.me) + ", step " + std::to_string(step);
  const Step& s = plan.steps[step];
  switch (s.kind) {
    case StepKind::kSend:
      return name + " (send to " + std::to_string(s.peer) + ")";
    case StepKind::kRecv:
      return name + " (recv from " + std::to_string(s.peer) + ")";
    case StepKind::kCopy:
      return name + " (copy)";
    case StepKind::kReduce:
      return name + " (reduce)";
  }
  return name + " (invalid)";
}

std::string block_name(Space space, uint32_t block) {
  static constexpr const char* kNames[] = {"input", "output", "scratch"};
  return std::string(kNames[static_cast<size_t>(space)]) + " block " + std::to_string(block);
}

namespace {

// Whether a rank's plan may have its kind, given that of rank 0.
bool kinds_fit(const Plan& first, const Plan& plan) {
  if (first.kind == PhaseKind::kSend && plan.me == 1) return plan.kind == PhaseKind::kRecv;
  return plan.kind == first.kind && plan.kind != PhaseKind::kRecv;
}

Status check_header(const std::vector<Plan>& plans, size_t rank) {
  const Plan& first = plans[0];
  const Plan& plan = plans[rank];
  const std::string who = "the plan of rank " + std::to_string(rank);
  if (plan.group_size != static_cast<int32_t>(plans.size())) {
    return fault(who + " is for a group of " + std::to_string(plan.group_size) + ", not of " +
                 std::to_string(plans.size()));
  }
  if (plan.me != static_cast<int32_t>(rank)) return fault(who + " says it is rank " + std::to_string(plan.me));
  if (!kinds_fit(first, plan))
    return fault(who + " is a " + to_string(plan.kind) + ", rank 0's a " + to_string(first.kind));
  if (plan.root != first.root || plan.root < 0 || plan.root >= plan.group_size) {
    return fault(who + " has root " + std::to_string(plan.root) + ", rank 0's root " + std::to_string(first.root));
  }
  if (plan.blocks != first.blocks || plan.blocks == 0) {
    return fault(who + " has " + std::to_string(plan.blocks) + " blocks, rank 0's " + std::to_string(first.blocks));
  }
  if (has_block_per_rank(plan.kind) && plan.blocks != plans.size() * parts_of(plan)) {
    const bool parts = plan.kind == PhaseKind::kAllToAll;
    return fault(who + " has " + std::to_string(plan.blocks) + " blocks; this phase has " +
                 (parts ? "equally many for each rank" : "one per rank"));
  }
  const bool may_turn = plan.kind == PhaseKind::kReduceScatter || plan.kind == PhaseKind::kAllGather ||
                        plan.kind == PhaseKind::kAllReduce;
  if (plan.turned != 0 && (!may_turn || !std::has_single_bit(plan.blocks) || plan.turned >= plan.blocks)) {
    return fault(who + " calls block i block i ^ " + std::to_string(plan.turned) + " of " +
                 std::to_string(plan.blocks));
  }
  return {};
}

Status check_range(const Plan& plan, uint32_t step, const BlockRange& range) {
  uint64_t limit = plan.scratch;
  if (range.space == Space::kInput) limit = input_blocks(plan);
  if (range.space == Space::kOutput) limit = output_blocks(plan);
  const uint64_t end = uint64_t{range.first} + range.count;
  if (end > limit) {
    return fault(step_name(plan, step) + " names " + block_name(range.space, static_cast<uint32_t>(end - 1)) +
                 ", but there are " + std::to_string(limit));
  }
  if (range.count != plan.steps[step].blocks) {
    return fault(step_name(plan, step) + " moves " + std::to_string(plan.steps[step].blocks) + " blocks but " +
                 block_name(range.space, range.first) + " starts a range of " + std::to_string(range.count));
  }
  return {};
}

Status check_peer(const Plan& plan, uint32_t step, int32_t peer) {
  if (peer >= 0 && peer < plan.group_size && peer != plan.me) return {};
  return fault(step_name(plan, step) + " names peer " + std::to_string(peer) + " of a group of " +
               std::to_string(plan.group_size));
}

Status check_sources(const Plan& plan, uint32_t index) {
  const Step& step = plan.steps[index];
  const bool reduce = step.kind == StepKind::kReduce;
  const uint32_t least = reduce ? 2 : step.kind == StepKind::kRecv ? 0 : 1;
  if (step.sources < least || (!reduce && step.sources > least)) {
    return fault(step_name(plan, index) + " has " + std::to_string(step.sources) + " sources");
  }
  if (uint64_t{step.first_source} + step.sources > plan.sources.size()) {
    return fault(step_name(plan, index) + " has sources outside the plan's list");
  }
  for (uint32_t s = 0; s < step.sources; ++s) {
    const Source& source = plan.sources[step.first_source + s];
    if (source.peer == kLocal) {
      TRY(check_range(plan, index, source.blocks));
    } else if (reduce) {
      TRY(check_peer(plan, index, source.peer));
    } else {
      return fault(step_name(plan, index) + " has a peer as its source; only a reduce may");
    }
  }
  return {};
}

Status check_dependencies(const Plan& plan, uint32_t index) {
  const Step& step = plan.steps[index];
  if (uint64_t{step.first_dependency} + step.dependencies > plan.dependencies.size()) {
    return fault(step_name(plan, index) + " has dependencies outside the plan's list");
  }
  for (uint32_t i = 0; i < step.dependencies; ++i) {
    const Dependency& d = plan.dependencies[step.first_dependency + i];
    if (d.step >= index) {
      return fault(step_name(plan, index) + " depends on step " + std::to_string(d.step) +
                   ", which does not come before it");
    }
    if (d.count == 0 || uint64_t{d.my_first} + d.count > step.blocks ||
        uint64_t{d.its_first} + d.count > plan.steps[d.step].blocks) {
      return fault(step_name(plan, index) + " depends on blocks that step " + std::to_string(d.step) +
                   " or the step itself does not have");
    }
  }
  return {};
}

Status check_turn(const Plan& plan, uint32_t index) {
  const Step& step = plan.steps[index];
  if (step.after == kNoStep) return {};
  if (step.after < index && is_message(step) && plan.steps[step.after].kind == step.kind) return {};
  return fault(step_name(plan, index) + " takes its turn after step " + std::to_string(step.after) +
               ", which is no earlier message in the same direction");
}

Status check_step(const Plan& plan, uint32_t index) {
  const Step& step = plan.steps[index];
  if (step.blocks == 0 || uint64_t{step.logical_first} + step.blocks > plan.blocks) {
    return fault(step_name(plan, index) + " moves " + std::to_string(step.blocks) + " logical blocks from " +
                 std::to_string(step.logical_first) + " on, but the phase has " + std::to_string(plan.blocks));
  }
  if (step.kind == StepKind::kSend || step.kind == StepKind::kRecv) TRY(check_peer(plan, index, step.peer));
  TRY(check_sources(plan, index));
  if (step.kind != StepKind::kSend) {
    TRY(check_range(plan, index, step.destination));
    if (step.destination.space == Space::kInput) {
      return fault(step_name(plan, index) + " writes " + block_name(Space::kInput, step.destination.first) +
                   "; inputs are read-only");
    }
  }
  TRY(check_dependencies(plan, index));
  return check_turn(plan, index);
}

}  // namespace

Status check_structure(const std::vector<Plan>& plans) {
  if (plans.empty()) return fault("the group has no ranks");
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    TRY(check_header(plans, rank));
    for (uint32_t step = 0; step < plans[rank].steps.size(); ++step) TRY(check_step(plans[rank], step));
  }
  return {};
}

}  // namespace checking

Status check_plans(const std::vector<Plan>& all_ranks, SumOrder order) {
  TRY(checking::check_structure(all_ranks));
  const std::vector<checking::Matches> matches = TRY(checking::match_messages(all_ranks));
  for (const Plan& plan : all_ranks) TRY(checking::check_order(plan));
  return checking::execute(all_ranks, matches, order);
}

}  // namespace trestle
