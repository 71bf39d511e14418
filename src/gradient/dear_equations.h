// What DeAR can gain at best: its equations 6 and 7 (arXiv 2302.12445). Pure, any thread. Times are seconds. They assume
// that fusion is ideal.
#pragma once

#include <cstdint>

namespace trestle {

struct DearTimes {
  double forward_s = 0;
  double backward_s = 0;
  double reduce_scatter_s = 0;
  double all_gather_s = 0;
};

double dear_step_s(const DearTimes& times);  // equation 7
// Equation 6: the most by which P workers are faster than one.
double dear_most_speedup(const DearTimes& times, uint32_t workers);

}  // namespace trestle
