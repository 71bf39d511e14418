// AR-Topk as a split primitive: of each group only its largest elements travel, by FLEX's collectives (arXiv
// 2312.02493, table I), in the two halves between which an optimizer may run. In no paper. Pure, any thread.
//
// The collective follows from the rules 5a to 5c for the whole gradient (compress/choice.h). Its halves are
//   ring        backward: indices broadcast, values reduce-scattered   forward: values gathered
//   tree        backward: indices broadcast, values reduced            forward: values broadcast
//   all-gather  backward: everything                                   forward: nothing
// A rank neither computes nor sends while it selects. So the time to select is added to the step, and the times of
// messages are those of a clock that stops meanwhile. Each tensor's elements are selected by themselves, so each half
// may have groups of its own. They are not the largest of the whole gradient.
#pragma once

#include <optional>

#include "compress/choice.h"
#include "gradient/network_cost.h"
#include "gradient/policy/policy.h"

namespace trestle {

// FLEX, differences of tables III to V: 0.12 ns per parameter of four bytes.
inline constexpr double kSelectPerByte = 0.03e-9;

// Per byte of the whole group. Together they cost what sparse_costs says.
struct SparseHalves {
  MessageCost backward;
  MessageCost forward;
};
SparseHalves sparse_halves(const NetworkModel& network, SparseCollective collective, double ratio);

// The collective for that many bytes.
SparseCollective sparse_collective(const NetworkModel& network, double bytes, double ratio);

// The largest ratio at which one exchange of the whole gradient hides: its first half takes no longer than the backward
// pass, and its second no longer than the forward pass. At most 1. Nothing: not even one element hides, for example
// because the startups alone take longer.
std::optional<double> hidden_ratio(const GradientWorkload& workload, const NetworkModel& network);

// The groups are the best ones of each half (split_free.h). Errors (kInvalidArgument): the request has no
// network; "hidden" without such a ratio.
Result<PlannedStep> plan_topk(const StepPlanRequest& request);

// The costs between two workers with which an all-reduce over a ring would cost `all_reduce`. For links of which only
// the costs of collectives are known.
NetworkModel as_ring(const MessageCost& all_reduce, uint32_t workers);

}  // namespace trestle
