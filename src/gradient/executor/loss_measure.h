// Estimates for DeFT's Preserver (gradient/deft/preserver.h) from the gradients of one step.
//
// Collective; used by the executor's thread while nothing else is on the communicator.
#pragma once

#include "gradient/executor/agreement.h"

namespace trestle {

struct LossEstimate {
  double drift = 0;
  double deviation = 0;  // of one sample
};

// gradients: by tensor, this rank's own, the mean over its samples. samples: of all ranks together, more than 0. Let g
// be the mean of the ranks' gradients g_r, with dots and norms over all tensors. The drift is |g|^2 without what the
// noise adds to it: (N |g|^2 - mean |g_r|^2) / (N - 1), and not below 0. The deviation is the standard deviation of
// g_r . g over the ranks, times the root of a rank's samples; for a single rank 0. All ranks get the same numbers.
// Errors: a tensor of integers (kInvalidUsage); trestleMemAlloc's, the communicator's.
Result<LossEstimate> measure_loss(trestleComm_t comm, const RankAgreement& agreement,
                                  const std::vector<TensorEntry>& tensors,
                                  const std::vector<const std::byte*>& gradients, double samples);

}  // namespace trestle
