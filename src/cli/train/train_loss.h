// The model of the loss in `trestle train`, for DeFT's Preserver (gradient/deft/preserver.h): the options --loss,
// --loss-epsilon and --loss-merged. Pure, any thread.
#pragma once

#include <optional>

#include "base/result.h"
#include "gradient/deft/preserver.h"

namespace trestle {

struct TrainOptions;

// Nothing without --loss. Errors (kInvalidArgument) are one sentence that begins with the option.
Result<std::optional<PreserverModel>> train_loss(const TrainOptions& options);

}  // namespace trestle
