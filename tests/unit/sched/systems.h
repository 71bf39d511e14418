// Requests and random systems for tests of schedule policies.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "sched/model/algorithm_choice.h"
#include "sched/model/cost.h"
#include "sched/policy/policies.h"
#include "study/paper_systems.h"

namespace trestle {

inline Dimension paper_dimension(int32_t size, DimensionKind kind, uint64_t gbps, uint64_t latency_ns) {
  Dimension dimension;
  dimension.size = size;
  dimension.kind = kind;
  dimension.bandwidth_mbps = gbps * 1000;
  dimension.latency_ns = latency_ns;
  return dimension;
}

// A request with everything that it refers to. In the paper's model if `scale` is not nullptr.
class PolicyCase {
 public:
  PolicyCase(Topology topology, const ModelScale* scale)
      : topology_(std::make_unique<Topology>(std::move(topology))),
        model_(scale == nullptr ? std::make_unique<CostModel>(*topology_)
                                : std::make_unique<CostModel>(*topology_, *scale)),
        choice_(std::make_unique<AlgorithmChoice>(nullptr, *model_)) {
    std::vector<uint8_t> dimensions;
    for (size_t d = 0; d < topology_->dimensions.size(); ++d) dimensions.push_back(static_cast<uint8_t>(d));
    request_ = std::make_unique<PolicyRequest>(PolicyRequest{*choice_, dimensions});
    request_->reduce_scatter = request_->all_gather = true;
  }

  PolicyRequest& request() { return *request_; }
  CostModel& model() { return *model_; }
  const Topology& topology() const { return *topology_; }

  // Cuts `bytes` (parts in the paper's model) into chunks that are as equal as the granule allows.
  void cut(uint64_t bytes, uint32_t chunks, uint64_t granule) {
    request_->bytes = bytes;
    request_->granule = granule;
    const uint64_t units = std::max<uint64_t>(1, bytes / granule);
    const uint64_t parts = std::min<uint64_t>(chunks, units);
    request_->chunk_bytes.clear();
    for (uint64_t k = 0; k < parts; ++k) {
      request_->chunk_bytes.push_back((units / parts + (k < units % parts ? 1 : 0)) * granule);
    }
    uint64_t sum = 0;
    for (const uint64_t each : request_->chunk_bytes) sum += each;
    request_->chunk_bytes.back() += bytes - sum;
  }

 private:
  std::unique_ptr<Topology> topology_;
  std::unique_ptr<CostModel> model_;
  std::unique_ptr<AlgorithmChoice> choice_;
  std::unique_ptr<PolicyRequest> request_;
};

// A case in the paper's model, whose links take any number of phases in flight.
inline PolicyCase paper_case(const Topology& topology, uint64_t bytes, uint32_t chunks) {
  const ModelScale scale = paper_scale(topology, bytes, chunks).value();
  PolicyCase result(topology, &scale);
  result.cut(bytes * scale.parts_per_byte, chunks, static_cast<uint64_t>(topology.ranks()));
  result.request().in_flight = 1024;
  return result;
}

// The time with all links always busy, in nanoseconds: 8 * bytes sent / bandwidth.
inline double ideal_ns(const Topology& topology, uint64_t bytes, bool both_halves) {
  double ranks = 1;
  double gbps = 0;
  for (const Dimension& each : topology.dimensions) {
    ranks *= each.size;
    gbps += static_cast<double>(each.bandwidth_mbps) / 1000;
  }
  return (both_halves ? 16.0 : 8.0) * static_cast<double>(bytes) * (ranks - 1) / ranks / gbps;
}

inline Topology random_topology(Rng& rng, size_t fewest, size_t most) {
  static constexpr int32_t kSizes[] = {2, 2, 3, 4, 4, 5, 7, 8, 16};
  Topology topology;
  const size_t count = fewest + rng.below(most - fewest + 1);
  const bool shared = rng.below(4) == 0;
  for (size_t d = 0; d < count; ++d) {
    const auto kind = static_cast<DimensionKind>(rng.below(3));
    Dimension dimension = paper_dimension(kSizes[rng.below(std::size(kSizes))], kind, 0, rng.below(20'000));
    dimension.bandwidth_mbps = 1000 * (1 + rng.below(2000));
    if (shared && rng.below(2) == 0) {
      dimension.shared_resource = rng.below(2) == 0 ? "memory" : "switch";
      dimension.shared_ps_per_byte = rng.below(50);
    }
    topology.dimensions.push_back(dimension);
  }
  return topology;
}

}  // namespace trestle
