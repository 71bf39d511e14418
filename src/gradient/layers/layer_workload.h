// A network of layers as a workload of the training step's planners. Pure, any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gradient/layers/iteration.h"
#include "gradient/workload.h"

namespace trestle {

// One tensor per layer, repeated ones too, with gradients in half precision and compute times of the roofline. Errors
// (kInvalidArgument): an unknown name; a network whose passes also wait for activations or tables, so that its step is
// not only gradients.
Result<GradientWorkload> layer_workload(std::string_view name, const Accelerator& accelerator = {});
// Whether a network of layers has this name.
bool is_layer_network(std::string_view name);

}  // namespace trestle
