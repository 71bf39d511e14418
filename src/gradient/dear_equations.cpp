#include "gradient/dear_equations.h"

#include <algorithm>

namespace trestle {

double dear_half_s(uint64_t bytes, uint32_t workers, double startup_s, double per_byte_s) {
  if (workers <= 1) return 0;
  const double p = workers;
  return (p - 1) * (startup_s + static_cast<double>(bytes) / p * per_byte_s);
}

double dear_step_s(const DearTimes& times) {
  return std::max(times.forward_s, times.all_gather_s) + std::max(times.backward_s, times.reduce_scatter_s);
}

double baseline_step_s(const DearTimes& times) {
  return times.forward_s + std::max(times.backward_s, times.reduce_scatter_s + times.all_gather_s);
}

double dear_most_speedup(const DearTimes& times, uint32_t workers) {
  return workers * (times.forward_s + times.backward_s) / dear_step_s(times);
}

double dear_saving_s(double forward_s, double all_gather_s) {
  return std::clamp(all_gather_s - forward_s, 0.0, forward_s);
}

}  // namespace trestle
