#include "sim/work_queue.h"

#include <algorithm>

#include "sim/network.h"

namespace trestle {

namespace {

uint64_t bytes_worked(const Work& work) {
  const bool folds = work.kind == WorkKind::kReduce || work.kind == WorkKind::kFold;
  return folds && work.source_count > 1 ? (work.source_count - 1) * work.bytes : work.bytes;
}

}  // namespace

SimWorkQueue::SimWorkQueue(SimNetwork& network, int32_t rank, const SimWork& spec, uint64_t percent, uint64_t seed)
    : network_(network), rank_(rank), spec_(spec), percent_(percent), rng_(seed) {
  network_.add_work_queue(rank_, this);
}

SimWorkQueue::~SimWorkQueue() {
  network_.add_work_queue(rank_, nullptr);
}

uint64_t SimWorkQueue::duration_ps(const Work& work) {
  const uint64_t delay_ns = spec_.most_delay_ns == 0 ? 0 : rng_.below(spec_.most_delay_ns + 1);
  const uint64_t moving_ps = bytes_worked(work) * kPsPerByteAtOneMbps / spec_.mbps;
  return (moving_ps + (spec_.launch_ns + delay_ns) * kPsPerNs) * percent_ / 100;
}

void SimWorkQueue::submit(Work& work) {
  work.state = WorkState::kSubmitted;
  work.next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = &work;
  last_ = &work;
  free_ps_ = std::max(free_ps_, network_.now_ps()) + duration_ps(work);
  network_.schedule_work(rank_, free_ps_);
}

// close() drops the work, but not its events in the network: then the queue is empty here.
void SimWorkQueue::end_first() {
  Work* const work = first_;
  if (work == nullptr) return;
  first_ = work->next;
  work->result = do_work(*work);
  work->state = WorkState::kDone;
  if (work->touched != nullptr) *work->touched = true;
  network_.wake(rank_);
}

}  // namespace trestle
