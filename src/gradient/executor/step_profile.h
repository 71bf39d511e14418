// StepProfile: the times of a step's tensors, from the stamps of the program's calls.
//
// Any thread may call ready() and waited(), for each tensor once per step. The other functions are for one thread,
// while no thread is in these two. Nanoseconds of one clock.
//
// Backward time: from the gradient that was ready before it. Forward time: from the return of the tensor's wait to the
// next call of a wait. For the last wait: a third of the time from its return to the first gradient. The other two
// thirds are that gradient's backward time, because backward takes twice as long as forward (DeAR, arXiv 2302.12445,
// section 2). Without waits, the first gradient's time counts from the end of the step before, or from the creation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace trestle {

class StepProfile {
 public:
  StepProfile(uint32_t tensors, int64_t now_ns);

  void ready(uint32_t tensor, int64_t now_ns);
  void waited(uint32_t tensor, int64_t called_ns, int64_t returned_ns);
  void end_step(int64_t now_ns);

  uint64_t steps() const { return steps_; }
  // Means over the steps, in seconds.
  std::vector<double> forward_s() const { return means(forward_ns_); }
  std::vector<double> backward_s() const { return means(backward_ns_); }

 private:
  struct Stamps {
    std::atomic<int64_t> ready{0};
    std::atomic<int64_t> called{0};  // 0: no wait in this step
    std::atomic<int64_t> returned{0};
  };
  std::vector<double> means(const std::vector<double>& sums) const;
  std::vector<uint32_t> by_time(std::atomic<int64_t> Stamps::*stamp) const;

  const uint32_t tensors_;
  const std::unique_ptr<Stamps[]> stamps_;
  std::vector<double> forward_ns_, backward_ns_;  // sums over the steps
  int64_t begin_ns_;
  uint64_t steps_ = 0;
};

}  // namespace trestle
