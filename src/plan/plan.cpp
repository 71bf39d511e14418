#include "plan/plan.h"

namespace trestle {

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

}  // namespace trestle
