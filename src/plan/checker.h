// check_plans: proves, without moving a byte, that the plans of all ranks of a group together do what their phase
// promises.
//
// Pure function, any thread; cost about (steps of all ranks) * (group size / 64). What it checks:
//   structure  Ranges are inside their spaces and peers inside the group, no step writes an input, and dependencies
//              point backwards.
//   messages   The k-th send to a peer has a k-th receive there, of the same logical blocks, and the reverse.
//   order      Two accesses to one block of memory, one of them a write, are ordered by the rank's own dependencies. In
//              place, blocks that are the same memory count as one. A send counts as a read that lasts until its
//              receiver has the message. So this holds however late the peer reads and in whatever order steps run. A
//              plan that passes is free of data races, so one execution stands for all interleavings.
//   turns      A message takes its turn only after an earlier one in the same direction.
//   execution  A send is complete only when its receiver has taken the message (no buffering at all), and a message in
//              a row begins only after the end of the one before (message_rows.h). Even so every step runs (no
//              deadlock). Every step reads blocks that are written and hold the logical blocks it names
//              (all-to-all: any). Each rank's contribution is added at most once (barrier: any number of times). At the
//              end every output holds what the table in plan.h says.
//   rank order (If requested, for kinds that reduce.) A Reduce combines sums of neighbouring ranks, in rank order.
// The first fault found is an Error (kInternalError) whose sentence names rank, step and block.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace trestle {

enum class SumOrder : uint8_t { kAny, kOfRanks };

// all_ranks[r] is the plan of rank r. All have the same kind, except that kSend goes with kRecv. in_place may differ
// between ranks.
Status check_plans(const std::vector<Plan>& all_ranks, SumOrder order = SumOrder::kAny);

}  // namespace trestle
