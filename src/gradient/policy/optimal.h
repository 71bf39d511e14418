// The exact optimum over all groupings of all-reduces behind the backward pass. Pure, any thread.
//
// No paper has it; it replaces Algorithm 1 of MG-WFBP (arXiv 1912.09268). With f[l] the time at which the messages of
// the tensors l .. L-1 are complete:
//   f[L] = 0;  f[l] = the least over k >= l of  max(f[k+1], ready[l]) + cost(bytes of l .. k)
// On one channel with release times, messages in the order of release end earliest. So no plan of whole messages is
// faster. O(L^2), and less where the messages are long. Where copies cost something, a message of several tensors that
// lie apart costs more than its bytes. That is exact too, because a longer run of tensors never costs less.
#pragma once

#include "gradient/plan.h"

namespace trestle {

// Of equal plans it takes the one whose messages of lower tensors have fewer tensors. copy_per_byte_s: as in
// GradientLink.
GradientPlan plan_optimal(const GradientWorkload& workload, const MessageCost& cost, double copy_per_byte_s = 0);

}  // namespace trestle
