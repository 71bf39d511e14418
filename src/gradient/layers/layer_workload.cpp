#include "gradient/layers/layer_workload.h"

#include <string>

namespace trestle {
namespace {

void add_layer(const WorkloadLayer& layer, const Workload& network, const Accelerator& accelerator,
               GradientWorkload& workload) {
  for (uint64_t i = 0; i < layer.repeat; ++i) {
    const std::string number = layer.repeat == 1 ? "" : "." + std::to_string(i);
    workload.tensors.push_back({std::string(layer.name) + number, layer.parameters * kElementBytes,
                                1e-9 * roofline_ns(layer, network, accelerator, 1),
                                1e-9 * roofline_ns(layer, network, accelerator, 2)});
  }
}

}  // namespace

bool is_layer_network(std::string_view name) {
  for (const Workload& network : workloads()) {
    if (network.name == name) return true;
  }
  return false;
}

Result<GradientWorkload> layer_workload(std::string_view name, const Accelerator& accelerator) {
  for (const Workload& network : workloads()) {
    if (network.name != name) continue;
    if (network.parallelism != Parallelism::kData) {
      return Error{Code::kInvalidArgument, std::string(name) +
                                               " exchanges more than gradients in its passes; trestle "
                                               "train study has it"};
    }
    GradientWorkload workload;
    for (const WorkloadLayer& layer : network.layers) add_layer(layer, network, accelerator, workload);
    return workload;
  }
  return Error{Code::kInvalidArgument, "\"" + std::string(name) + "\" is no network of layers"};
}

}  // namespace trestle
