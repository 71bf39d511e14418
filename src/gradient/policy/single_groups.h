// Groups of one tensor each. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "gradient/workload.h"

namespace trestle {

inline std::vector<TensorGroup> single_groups(uint32_t tensors) {
  std::vector<TensorGroup> groups;
  for (uint32_t i = 0; i < tensors; ++i) groups.push_back({i, i});
  return groups;
}

}  // namespace trestle
