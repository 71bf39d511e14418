#include "gradient/deft/baselines.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trestle {
namespace {

constexpr int kBaselineIterations = 12;  // of which the last two give the time

// One link that takes ready parts by priority. It runs behind compute, up to the bucket that compute waits for.
class PriorityLink {
 public:
  PriorityLink(std::span<const DeftBucket> buckets, double part_us) : queues_(buckets.size()) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      const auto comm = static_cast<double>(buckets[i].comm_us);
      queues_[i].parts = part_us > 0 ? std::max(1.0, std::ceil(comm / part_us)) : 1;
      queues_[i].part_us = comm / queues_[i].parts;
    }
  }

  void release(size_t bucket, double when_us) {
    queues_[bucket].left = queues_[bucket].parts;
    queues_[bucket].released_us = when_us;
  }

  // Sends until all parts of the bucket have arrived, and returns when they had.
  double arrival_us(size_t bucket) {
    while (queues_[bucket].left > 0) send_one();
    return queues_[bucket].arrived_us;
  }

 private:
  struct Queue {
    double parts = 1;
    double part_us = 0;
    double left = 0;  // parts to send
    double released_us = 0;
    double arrived_us = 0;
  };

  void send_one() {
    Queue* next = nullptr;
    double earliest_us = INFINITY;
    for (const Queue& queue : queues_) {
      if (queue.left > 0) earliest_us = std::min(earliest_us, queue.released_us);
    }
    const double now_us = std::max(free_us_, earliest_us);
    for (Queue& queue : queues_) {
      if (next == nullptr && queue.left > 0 && queue.released_us <= now_us) next = &queue;
    }
    free_us_ = now_us + next->part_us;
    next->left -= 1;
    next->arrived_us = free_us_;
  }

  std::vector<Queue> queues_;
  double free_us_ = 0;
};

}  // namespace

double ddp_iteration_us(std::span<const DeftBucket> buckets) {
  uint64_t now = forward_us(buckets);
  uint64_t arrived = 0;
  for (size_t i = buckets.size(); i-- > 0;) {
    now += buckets[i].backward_us;
    arrived = std::max(arrived, now) + buckets[i].comm_us;
  }
  return static_cast<double>(std::max(now, arrived));
}

double byte_scheduler_iteration_us(std::span<const DeftBucket> buckets, double part_us) {
  PriorityLink link(buckets, part_us);
  double now_us = 0;
  double before_us = 0;
  double begin_us = 0;
  for (int iteration = 0; iteration < kBaselineIterations; ++iteration) {
    before_us = begin_us;
    begin_us = now_us;
    for (size_t i = 0; i < buckets.size(); ++i) {
      now_us = std::max(now_us, link.arrival_us(i)) + static_cast<double>(buckets[i].forward_us);
    }
    for (size_t i = buckets.size(); i-- > 0;) {
      now_us += static_cast<double>(buckets[i].backward_us);
      link.release(i, now_us);
    }
  }
  return begin_us - before_us;
}

}  // namespace trestle
