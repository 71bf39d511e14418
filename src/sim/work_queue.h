// SimWorkQueue: a WorkQueue in simulated time. A rank does its work on data one piece after the other, and each takes
// the time that SimWork says. Owned by an engine of the SimCluster; one thread.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "engine/work/work_queue.h"

namespace trestle {

class SimNetwork;

// How long work on data takes on a rank.
struct SimWork {
  // 10^6 bit/s that are copied, multiplied, or folded into others: k sources of n bytes are (k - 1) * n. 0: work takes
  // no time, and is done where it is submitted.
  uint64_t mbps = 0;
  uint64_t launch_ns = 0;      // on top, for each piece of work
  uint64_t most_delay_ns = 0;  // on top, 0 to this at random (SimFaults::seed)
};

class SimWorkQueue : public WorkQueue {
 public:
  // percent: SlowRank::percent of the rank.
  SimWorkQueue(SimNetwork& network, int32_t rank, const SimWork& spec, uint64_t percent, uint64_t seed);
  ~SimWorkQueue() override;
  SimWorkQueue(const SimWorkQueue&) = delete;
  SimWorkQueue& operator=(const SimWorkQueue&) = delete;

  void submit(Work& work) override;
  bool poll() override { return false; }  // the state changes when the time has come
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  bool close(int64_t) override {
    first_ = last_ = nullptr;
    return true;
  }

  // The time of the oldest work has come. Called by the network.
  void end_first();

 private:
  uint64_t duration_ps(const Work& work);

  SimNetwork& network_;
  const int32_t rank_;
  const SimWork spec_;
  const uint64_t percent_;
  Rng rng_;
  uint64_t free_ps_ = 0;  // when all that was submitted has ended
  Work* first_ = nullptr;
  Work* last_ = nullptr;
};

}  // namespace trestle
