// SimWorkQueue: a WorkQueue in simulated time. A rank does one piece of work after the other. SimWork gives their
// durations. Owned by an engine of the SimCluster; one thread.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "engine/work/work_queue.h"

namespace trestle {

class SimNetwork;

// The duration of work on data.
struct SimWork {
  // Speed of copying, multiplying and folding in 10^6 bit/s. k sources of n bytes count as (k - 1) * n. 0: work takes
  // no time and is done when it is submitted.
  uint64_t mbps = 0;
  uint64_t launch_ns = 0;      // added to each piece of work
  uint64_t most_delay_ns = 0;  // 0 to this is added at random (SimFaults::seed)
};

class SimWorkQueue : public WorkQueue {
 public:
  // percent: SlowRank::percent of the rank.
  SimWorkQueue(SimNetwork& network, int32_t rank, const SimWork& spec, uint64_t percent, uint64_t seed);
  ~SimWorkQueue() override;
  SimWorkQueue(const SimWorkQueue&) = delete;
  SimWorkQueue& operator=(const SimWorkQueue&) = delete;

  void submit(Work& work) override;
  bool poll() override { return false; }  // end_first() changes the state
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  bool close(int64_t) override {
    first_ = last_ = nullptr;
    return true;
  }

  // Ends the oldest work. The network calls it when the work's time is over.
  void end_first();

 private:
  uint64_t duration_ps(const Work& work);

  SimNetwork& network_;
  const int32_t rank_;
  const SimWork spec_;
  const uint64_t percent_;
  Rng rng_;
  uint64_t free_ps_ = 0;  // when all submitted work has ended
  Work* first_ = nullptr;
  Work* last_ = nullptr;
};

}  // namespace trestle
