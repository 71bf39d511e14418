// Replay: the training steps of one rank, as a program would run them. Compute is sleeping until absolute times.
//
// Used by one thread, which is none of the library's. A failed library call ends the process (driver/ending.h).
#pragma once

#include <trestle/gradient.h>

#include <cstdint>
#include <vector>

#include "gradient/workload.h"
#include "perf/train_step/gradients.h"
#include "perf/train_step/step_clock.h"

namespace trestle::perf {

class Replay {
 public:
  // workload: its compute times are replayed. spoil: the verified step, from 1, in which a result is altered before it
  // is compared; 0: none. All must live longer.
  Replay(trestleGrad_t grad, const GradientWorkload& workload, StepGradients& gradients, bool verified, int spoil);

  // Compute begins now, and what was measured before is forgotten. Nothing is under way. compares: false leaves the
  // gradients of the next steps unverified.
  void begin(bool compares);
  // One step. plain: gradients stay where they are, as while times are measured without a plan.
  void step(bool plain);
  // Waits for the last step, and verifies it.
  void finish();

  int64_t end_ns() const { return end_ns_; }                         // of the last step
  const std::vector<double>& ready_ns() const { return ready_ns_; }  // each call of trestleGradReady since begin()
  double late_ns() const;                                            // mean delay of these calls
  uint64_t wrong() const { return wrong_; }                          // elements since begin()
  void forget_calls();                                               // the warm-up is over

 private:
  void wait_for(uint32_t tensor);
  void verify(uint32_t tensor);
  void make_ready(uint32_t tensor);

  const trestleGrad_t grad_;
  const GradientWorkload& workload_;
  StepGradients& gradients_;
  const bool verified_;
  const uint64_t spoil_;
  const StepClock clock_;
  int64_t at_ns_ = 0;  // when the compute so far ends
  int64_t end_ns_ = 0;
  uint64_t steps_ = 0;           // that have ended
  uint64_t verified_steps_ = 0;  // whose comparison has begun
  bool compares_ = false;
  bool pending_ = false;  // the last step's results were not compared
  bool any_step_ = false;
  uint64_t wrong_ = 0;
  double late_sum_ns_ = 0;
  std::vector<double> ready_ns_;
};

}  // namespace trestle::perf
