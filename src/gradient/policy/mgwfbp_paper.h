// MG-WFBP's Algorithm 1 as printed. Pure, any thread.
//
// MG-WFBP (arXiv 1912.09268), Algorithm 1 with rule 38: a tensor is merged into the one before it if that one is ready
// less than a startup after this one could be sent. The paper's theorem 1 says that this is optimal. It is not: the
// lemma compares one tensor with a pair, but each step adds a wait below the startup, and the waits add up. In the
// end everything merges. `optimal` is exact. Here O(L); the paper's O(L^2) comes from recomputing all times.
#pragma once

#include "gradient/plan.h"

namespace trestle {

GradientPlan plan_mgwfbp_paper(const GradientWorkload& workload, const MessageCost& cost);

}  // namespace trestle
