#include "perf/train_step/workload.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/train/workload_file.h"
#include "gradient/networks.h"

namespace trestle::perf {
namespace {

constexpr double kMostBytes = 1e12;  // of all tensors together

// The text was verified when it was parsed.
ComputeTime compute_of(const std::string& text) {
  char* comma = nullptr;
  const double forward_s = std::strtod(text.c_str(), &comma);
  return {forward_s, std::strtod(comma + 1, nullptr)};
}

Result<GradientWorkload> named_workload(const TrainStepArguments& arguments) {
  const Result<Network> network = find_network(arguments.workload);
  if (!arguments.compute.empty()) {
    if (!network.ok()) return invalid_argument("--compute: " + network.error().message);
    return workload_of(network.value(), compute_of(arguments.compute));
  }
  const Result<GradientWorkload> built_in = built_in_workload(arguments.workload);
  if (built_in.ok()) return built_in;
  if (network.ok()) return invalid_argument("--workload: " + built_in.error().message + " with --compute");
  const Result<GradientWorkload> read = read_workload_file(arguments.workload);
  if (read.ok()) return read;
  return invalid_argument("--workload: " + read.error().message +
                          " (and it is no built-in workload: `trestle train --list` shows these)");
}

void scale_bytes(GradientWorkload& workload, double factor) {
  for (GradientTensor& tensor : workload.tensors) {
    if (tensor.bytes == 0) continue;
    const double elements = std::max(std::round(static_cast<double>(tensor.bytes) * factor / sizeof(float)), 1.0);
    tensor.bytes = static_cast<uint64_t>(elements) * sizeof(float);
  }
}

}  // namespace

void scale_compute(GradientWorkload& workload, double factor) {
  for (GradientTensor& tensor : workload.tensors) {
    tensor.forward_s *= factor;
    tensor.backward_s *= factor;
  }
}

Result<GradientWorkload> replayed_workload(const TrainStepArguments& arguments) {
  GradientWorkload workload = TRY(named_workload(arguments));
  if (arguments.compact) workload = compact(workload);
  double bytes = 0;
  for (const GradientTensor& tensor : workload.tensors) bytes += static_cast<double>(tensor.bytes);
  if (bytes * arguments.scale_bytes > kMostBytes)
    return invalid_argument("--scale-bytes makes more of the gradients than any memory holds");
  scale_bytes(workload, arguments.scale_bytes);
  scale_compute(workload, arguments.scale_time);
  if (arguments.balance > 0 && (workload.bytes() == 0 || workload.forward_s() + workload.backward_s() <= 0))
    return invalid_argument("--balance scales compute times by those of messages, and the workload lacks one of them");
  return workload;
}

}  // namespace trestle::perf
