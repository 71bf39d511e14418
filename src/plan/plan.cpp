#include "plan/plan.h"

#include "base/hash.h"

namespace trestle {

namespace {

void add(Hasher& hasher, const BlockRange& range) {
  hasher.integer(static_cast<uint64_t>(range.space)).integer(range.first).integer(range.count);
}

std::string range_text(uint32_t first, uint32_t count) {
  std::string text = "[";
  text += std::to_string(first);
  if (count > 1) text.append("..").append(std::to_string(first + count - 1));
  return text += "]";
}

std::string blocks_text(const BlockRange& range) {
  static constexpr const char* kNames[] = {"input", "output", "scratch"};
  return kNames[static_cast<size_t>(range.space)] + range_text(range.first, range.count);
}

std::string message_text(uint32_t message, const char* preposition, int32_t peer) {
  std::string text = "message ";
  return text.append(std::to_string(message)).append(preposition).append(std::to_string(peer));
}

std::string source_text(const Source& source) {
  return source.peer == kLocal ? blocks_text(source.blocks) : message_text(source.message, " of ", source.peer);
}

std::string moves_text(const Plan& plan, const Step& step) {
  static constexpr const char* kNames[] = {"send ", "recv ", "copy ", "reduce "};
  std::string text = kNames[static_cast<size_t>(step.kind)];
  if (step.kind != StepKind::kSend) text.append(blocks_text(step.destination)).append(" <- ");
  for (uint32_t i = 0; i < step.sources; ++i) {
    text.append(i == 0 ? "" : " + ").append(source_text(plan.sources[step.first_source + i]));
  }
  if (step.kind == StepKind::kSend) text.append(" -> ").append(message_text(step.message, " to ", step.peer));
  if (step.kind == StepKind::kRecv) text.append(message_text(step.message, " of ", step.peer));
  return text;
}

std::string dependencies_text(const Plan& plan, const Step& step) {
  std::string text;
  for (uint32_t i = 0; i < step.dependencies; ++i) {
    const Dependency& d = plan.dependencies[step.first_dependency + i];
    text += i == 0 ? "; after " : ", ";
    text += std::to_string(d.step);
    // In the usual case both sides are whole and aligned, and need no ranges.
    if (d.my_first == 0 && d.its_first == 0 && d.count == step.blocks && d.count == plan.steps[d.step].blocks) continue;
    text += range_text(d.its_first, d.count) + " for " + range_text(d.my_first, d.count);
  }
  if (step.after != kNoStep) text += "; in turn after " + std::to_string(step.after);
  return text;
}

}  // namespace

const char* to_string(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kReduceScatter:
      return "reduce-scatter";
    case PhaseKind::kAllGather:
      return "all-gather";
    case PhaseKind::kAllReduce:
      return "all-reduce";
    case PhaseKind::kReduce:
      return "reduce";
    case PhaseKind::kBroadcast:
      return "broadcast";
    case PhaseKind::kAllToAll:
      return "all-to-all";
    case PhaseKind::kSend:
      return "send";
    case PhaseKind::kRecv:
      return "recv";
    case PhaseKind::kGather:
      return "gather";
    case PhaseKind::kScatter:
      return "scatter";
    case PhaseKind::kAllToAllV:
      return "all-to-all-v";
    case PhaseKind::kGatherV:
      return "gather-v";
    case PhaseKind::kScatterV:
      return "scatter-v";
    case PhaseKind::kBarrier:
      return "barrier";
  }
  return "invalid";
}

uint32_t input_blocks(const Plan& plan) {
  switch (with_known_blocks(plan.kind)) {
    case PhaseKind::kReduceScatter:
      return static_cast<uint32_t>(plan.group_size);
    case PhaseKind::kAllGather:
    case PhaseKind::kGather:
      return 1;
    case PhaseKind::kScatter:
      return plan.me == plan.root ? static_cast<uint32_t>(plan.group_size) : 0;
    case PhaseKind::kAllReduce:
    case PhaseKind::kAllToAll:
    case PhaseKind::kReduce:
    case PhaseKind::kSend:
    case PhaseKind::kBarrier:
      return plan.blocks;
    case PhaseKind::kBroadcast:
      return plan.me == plan.root ? plan.blocks : 0;
    default:
      return 0;
  }
}

uint32_t output_blocks(const Plan& plan) {
  switch (with_known_blocks(plan.kind)) {
    case PhaseKind::kReduceScatter:
    case PhaseKind::kScatter:
      return 1;
    case PhaseKind::kGather:
      return plan.me == plan.root ? static_cast<uint32_t>(plan.group_size) : 0;
    case PhaseKind::kAllGather:
      return static_cast<uint32_t>(plan.group_size);
    case PhaseKind::kAllReduce:
    case PhaseKind::kAllToAll:
    case PhaseKind::kBroadcast:
    case PhaseKind::kRecv:
    case PhaseKind::kBarrier:
      return plan.blocks;
    case PhaseKind::kReduce:
      return plan.me == plan.root ? plan.blocks : 0;
    default:
      return 0;
  }
}

uint32_t parts_of(const Plan& plan) {
  if (plan.kind != PhaseKind::kAllToAll) return 1;
  return plan.blocks / static_cast<uint32_t>(plan.group_size);
}

uint64_t hash(const Plan& plan) {
  Hasher hasher;
  hasher.integer(static_cast<uint64_t>(plan.kind)).integer(static_cast<uint64_t>(plan.group_size));
  hasher.integer(static_cast<uint64_t>(plan.me)).integer(static_cast<uint64_t>(plan.root));
  hasher.integer(plan.in_place ? 1 : 0).integer(plan.blocks).integer(plan.scratch);
  hasher.integer(plan.steps.size());
  for (const Step& step : plan.steps) {
    hasher.integer(static_cast<uint64_t>(step.kind)).integer(static_cast<uint64_t>(step.peer)).integer(step.message);
    add(hasher, step.destination);
    hasher.integer(step.logical_first).integer(step.blocks);
    hasher.integer(step.first_source).integer(step.sources);
    hasher.integer(step.first_dependency).integer(step.dependencies);
  }
  hasher.integer(plan.sources.size());
  for (const Source& source : plan.sources) {
    hasher.integer(static_cast<uint64_t>(source.peer));
    add(hasher, source.blocks);
    hasher.integer(source.message);
  }
  hasher.integer(plan.dependencies.size());
  for (const Dependency& d : plan.dependencies) {
    hasher.integer(d.step).integer(d.my_first).integer(d.its_first).integer(d.count);
  }
  // Hashes of plans without these stay as they were.
  if (plan.turned != 0) hasher.integer(plan.turned);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].after != kNoStep) hasher.integer(i).integer(plan.steps[i].after);
  }
  return hasher.digest();
}

std::string to_string(const Plan& plan) {
  std::string text = to_string(plan.kind);
  text += ", rank " + std::to_string(plan.me) + " of " + std::to_string(plan.group_size);
  if (has_root(plan.kind)) text += ", root " + std::to_string(plan.root);
  text += std::string(plan.in_place ? ", in place, " : ", ") + std::to_string(plan.blocks) + " blocks, " +
          std::to_string(plan.scratch) + " scratch blocks" +
          (plan.turned == 0 ? "" : ", block i is block i ^ " + std::to_string(plan.turned)) + "\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    text += "  " + std::to_string(i) + ": " + moves_text(plan, step) + "; logical " +
            range_text(step.logical_first, step.blocks) + dependencies_text(plan, step) + "\n";
  }
  return text;
}

}  // namespace trestle
