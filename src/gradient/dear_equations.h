// What DeAR can gain at best: its equations 3 to 9 (arXiv 2302.12445). Pure, any thread. Times are
// seconds.
//
// They assume that fusion is ideal, and the saving also that the backward pass takes twice as long as the forward pass.
// Where they say that DeAR saves nothing, it can lose: its halves have more startups.
#pragma once

#include <cstdint>

namespace trestle {

// Equations 3 and 4: a ring reduce-scatter or all-gather of so many bytes on P workers.
double dear_half_s(uint64_t bytes, uint32_t workers, double startup_s, double per_byte_s);

struct DearTimes {
  double forward_s = 0;
  double backward_s = 0;
  double reduce_scatter_s = 0;
  double all_gather_s = 0;
};

double dear_step_s(const DearTimes& times);      // equation 7
double baseline_step_s(const DearTimes& times);  // of all-reduces behind the backward pass
// Equation 6: the most by which P workers are faster than one.
double dear_most_speedup(const DearTimes& times, uint32_t workers);
// What DeAR saves per step if the backward pass takes 2 forward_s.
double dear_saving_s(double forward_s, double all_gather_s);

}  // namespace trestle
