// Workloads and links for tests of the training step. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "gradient/network_cost.h"
#include "gradient/networks.h"
#include "gradient/plan.h"
#include "gradient/timeline.h"
#include "gradient/workload.h"

namespace trestle {

inline GradientWorkload workload_from(const std::vector<uint64_t>& bytes, const std::vector<double>& forward_s,
                                      const std::vector<double>& backward_s) {
  GradientWorkload workload;
  for (size_t i = 0; i < bytes.size(); ++i) {
    workload.tensors.push_back({"w" + std::to_string(i), bytes[i], forward_s[i], backward_s[i]});
  }
  return workload;
}

// Some tensors have no bytes, some no work. Times are of the size of the messages.
inline GradientWorkload random_workload(Rng& rng, size_t most_tensors) {
  GradientWorkload workload;
  const size_t tensors = 1 + rng.below(most_tensors);
  const double scale = std::vector<double>{0.2, 1, 5}[rng.below(3)];
  for (size_t i = 0; i < tensors; ++i) {
    const uint64_t bytes = rng.below(6) == 0 ? 0 : 1 + rng.below(20u << 20);
    const bool works = rng.below(5) != 0;
    workload.tensors.push_back(
        {"w" + std::to_string(i), bytes, works ? scale * rng.uniform() : 0, works ? 2 * scale * rng.uniform() : 0});
  }
  return workload;
}

inline GradientLink random_link(Rng& rng) {
  const double startup = rng.below(5) == 0 ? 0 : rng.uniform();
  const double per_byte = rng.below(8) == 0 ? 0 : 2e-7 * rng.uniform();
  return halved_link({startup, per_byte});
}

// 64 workers in a ring: 10 Gb/s Ethernet, and InfiniBand as DeAR's table II implies it.
inline GradientLink ethernet_64() {
  return network_link({26e-6, 0.8e-9, 0, 64}, AllReduceAlgorithm::kRing);
}

inline GradientLink infiniband_64() {
  return network_link({6.4e-6, 1 / 5.81e9, 0, 64}, AllReduceAlgorithm::kRing);
}

inline double iteration_s(const GradientPlan& plan, const GradientWorkload& workload, const GradientLink& link) {
  return time_step(plan, workload, link).iteration_s;
}

// Every way to cut so many tensors into groups, in forward order: 2^(tensors - 1).
inline std::vector<std::vector<TensorGroup>> all_groupings(uint32_t tensors) {
  std::vector<std::vector<TensorGroup>> all;
  for (uint32_t cuts = 0; cuts < 1u << (tensors - 1); ++cuts) {
    std::vector<TensorGroup> groups = {{0, 0}};
    for (uint32_t i = 1; i < tensors; ++i) {
      if ((cuts >> (i - 1) & 1) != 0) groups.push_back({i, i});
      groups.back().last = i;
    }
    all.push_back(groups);
  }
  return all;
}

}  // namespace trestle
