#include "gradient/dear_equations.h"

#include <algorithm>

namespace trestle {

double dear_step_s(const DearTimes& times) {
  return std::max(times.forward_s, times.all_gather_s) + std::max(times.backward_s, times.reduce_scatter_s);
}

double dear_most_speedup(const DearTimes& times, uint32_t workers) {
  return workers * (times.forward_s + times.backward_s) / dear_step_s(times);
}

}  // namespace trestle
