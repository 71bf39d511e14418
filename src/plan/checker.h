// check_plans: proves, without moving a byte, that the plans of all ranks of a group together do what their phase
// promises.
//
// Pure function, any thread; cost about (steps of all ranks) * (group size / 64). What it shows:
//   structure  ranges inside their spaces, peers inside the group, nobody writes an input, dependencies point backwards
//   messages   the k-th send to a peer has a k-th receive there, of the same logical blocks, and the reverse
//   order      two accesses of one block of memory, one of them a write, are ordered by the rank's own dependencies. In
//   place, blocks
//              that are the same memory count as one. Since a send counts as a read that lasts until its receiver has
//              the message, this holds however late the peer reads and in whatever order steps run: a plan that passes
//              is free of data races, so that one execution stands for all interleavings.
//   execution  with every send complete only when its receiver has taken the message (no buffering at all): every step
//   runs (no
//              deadlock), reads set blocks that hold the logical blocks it names (all-to-all: any), adds each rank's
//              contribution at most once (barrier: any number of times), and in the end every output holds what the
//              table in plan.h says.
//   rank order (if asked for, of what reduces) a Reduce puts together sums of neighbouring ranks, in rank order
// The first fault found is an Error (kInternalError) whose sentence names rank, step and block.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace trestle {

enum class SumOrder : uint8_t { kAny, kOfRanks };

// all_ranks[r] is the plan of rank r. All are of one kind, except that kSend goes with kRecv. in_place may differ
// between ranks.
Status check_plans(const std::vector<Plan>& all_ranks, SumOrder order = SumOrder::kAny);

}  // namespace trestle
