// The kinds of phase that collectives are made of (base/collective.h says which, plan/plan.h what a phase of each kind
// moves). Plain values, any thread. Ranks compare hashes of their schedules, which hold these numbers, so they never
// change.
#pragma once

#include <cstdint>

namespace trestle {

enum class PhaseKind : uint8_t {
  kReduceScatter,
  kAllGather,
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllToAll,
  kSend,
  kRecv,
  kGather,
  kScatter,
  kAllToAllV,
  kGatherV,
  kScatterV,
  kBarrier
};
inline constexpr int kPhaseKinds = 14;
// Of a kind whose blocks are known to two ranks only: the kind with blocks that all know; else the kind itself.
constexpr PhaseKind with_known_blocks(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kAllToAllV:
      return PhaseKind::kAllToAll;
    case PhaseKind::kGatherV:
      return PhaseKind::kGather;
    case PhaseKind::kScatterV:
      return PhaseKind::kScatter;
    default:
      return kind;
  }
}
constexpr bool has_pairwise_blocks(PhaseKind kind) {
  return with_known_blocks(kind) != kind;
}
// Whether its data is a block for each rank.
constexpr bool has_block_per_rank(PhaseKind kind) {
  const PhaseKind known = with_known_blocks(kind);
  return known == PhaseKind::kReduceScatter || known == PhaseKind::kAllGather || known == PhaseKind::kAllToAll ||
         known == PhaseKind::kGather || known == PhaseKind::kScatter;
}
constexpr bool has_root(PhaseKind kind) {
  const PhaseKind known = with_known_blocks(kind);
  return known == PhaseKind::kReduce || known == PhaseKind::kBroadcast || known == PhaseKind::kGather ||
         known == PhaseKind::kScatter;
}
constexpr bool reduces(PhaseKind kind) {
  return kind == PhaseKind::kReduceScatter || kind == PhaseKind::kAllReduce || kind == PhaseKind::kReduce;
}

}  // namespace trestle
