// A program that trains under a policy that delays, and checks each result against the sum of the gradients that the
// scheduler says are in it. One per rank.
#pragma once

#include <vector>

#include "conformance/gradient/gradient_model.h"

namespace gradients {

// Compute of a millisecond for each tensor and pass. If each tensor travels alone, all messages together take `ratio`
// times all compute.
void set_delayed_times(trestleGrad_t grad, int tensors, double ratio);
double updates_per_iteration(trestleGrad_t grad);
trestleCommStats_t stats_of(trestleComm_t comm);

class DelayedTrainer {
 public:
  // ratio: as for set_delayed_times. The scheduler has no update function.
  DelayedTrainer(const std::vector<trestleComm_t>& comms, int rank, std::vector<Tensor> tensors, Memory memory,
                 double ratio = 1.5, unsigned allow = trestleGradAllowStale);
  ~DelayedTrainer();
  DelayedTrainer(const DelayedTrainer&) = delete;
  DelayedTrainer& operator=(const DelayedTrainer&) = delete;

  trestleGrad_t grad() const { return grad_; }
  void plan(const char* policy);
  // Steps with checked results. Returns the batches of each result. threads: that make gradients ready.
  std::vector<int> train(size_t steps, int threads = 1);
  // Steps with some compute, and waits in the order of the forward pass. Checks as train() does if there is a plan.
  void measure(size_t steps);
  // Brings in the rest and checks it. Returns its batches.
  int drain();
  // The statistics agree with everything that was told since the beginning.
  void expect_all_counted();

 private:
  void make_ready(int threads);
  // Of the last step: the same for all tensors. Checks the gradients' memory.
  int check_result();

  trestleGrad_t grad_ = nullptr;
  const int rank_;
  int ranks_ = 1;
  Model model_;
  uint64_t step_ = 0;                             // the last one
  uint64_t given_ = 0;                            // of these, in results
  uint64_t results_ = 0, ages_ = 0, oldest_ = 0;  // of delayed ones
  bool planned_ = false;
  bool delays_ = false;
};

}  // namespace gradients
