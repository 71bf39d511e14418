// The built-in networks: tensors of sixteen published models, and compute times of a step as far as papers say or imply
// them. Constants and pure functions, any thread.
//
// Work is the share of a tensor in the compute time: the multiply-accumulates of one sample for weights of convolutions
// and products, 20 per element of the output for weights of norms and embeddings, none for biases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gradient/workload.h"

namespace trestle {

struct NetworkTensor {
  std::string name;
  uint64_t elements = 0;
  uint64_t work = 0;
};

struct Network {
  std::string name;
  std::string title;
  std::vector<NetworkTensor> tensors;  // forward order
  uint64_t parameters() const;
};

std::vector<std::string_view> network_names();
// Errors (kInvalidArgument) list the names.
Result<Network> find_network(std::string_view name);

struct ComputeTime {
  double forward_s = 0;
  double backward_s = 0;
};

// A network with a compute time of one step on one accelerator.
struct NamedComputeTime {
  std::string_view name;  // "resnet50@dear"
  std::string_view network;
  ComputeTime time;
  std::string_view source;
};

std::span<const NamedComputeTime> compute_times();

// Each tensor gets its share of the compute time by its work. Elements have four bytes.
GradientWorkload workload_of(const Network& network, const ComputeTime& time);
// By the name of a compute time, or of a network: then with its first compute time. Errors (kInvalidArgument): an
// unknown name, a network without a compute time.
Result<GradientWorkload> built_in_workload(std::string_view name);

// Joins every tensor without compute time to the one before it, as frameworks do that handle a layer's weight and bias
// as one. The bias is then ready later than alone, by the weight's backward time: plans get slower by microseconds.
GradientWorkload compact(const GradientWorkload& workload);

}  // namespace trestle
