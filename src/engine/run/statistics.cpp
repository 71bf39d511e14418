#include "engine/run/statistics.h"

#include <algorithm>
#include <utility>

namespace trestle {

namespace {

std::vector<uint8_t> lanes_of(std::vector<uint8_t> dimension_of, uint8_t nowhere) {
  for (uint8_t& dimension : dimension_of) dimension = std::min(dimension, nowhere);
  return dimension_of;
}

}  // namespace

CollectiveCounts& CollectiveCounts::operator+=(const CollectiveCounts& other) {
  started += other.started;
  completed += other.completed;
  failed += other.failed;
  express += other.express;
  by_caller += other.by_caller;
  bytes.given += other.bytes.given;
  bytes.taken += other.bytes.taken;
  return *this;
}

CollectiveCounts StatisticsReading::total() const {
  CollectiveCounts sum;
  for (const CollectiveCounts& counts : collectives) sum += counts;
  return sum;
}

Statistics::Statistics(Clock* clock, std::vector<uint8_t> dimension_of)
    : clock_(clock), lane_of_(lanes_of(std::move(dimension_of), kNowhere)), begin_ns_(now()) {}

void Statistics::submitted(Collective collective, const CallBytes& bytes, bool over_board) {
  Calls& calls = calls_[static_cast<size_t>(collective)];
  calls.given.add(bytes.given);
  calls.taken.add(bytes.taken);
  if (over_board) calls.over_board.add(1);
  calls.submitted.add(1);
}

void Statistics::ended(Collective collective, bool failed) {
  Ends& ends = ends_[static_cast<size_t>(collective)];
  (failed ? ends.failed : ends.completed).add(1);
}

void Statistics::change_phases(uint32_t dimensions, int by) {
  for (size_t d = 0; d < kMaxDimensions; ++d) {
    if ((dimensions >> d & 1) == 0) continue;
    Lane& lane = lanes_[d];
    const bool was_used = lane.phases != 0;
    lane.phases += static_cast<uint32_t>(by);
    if (was_used == (lane.phases != 0)) continue;
    const uint64_t twice = 2 * now();
    const uint64_t busy = lane.busy.load(std::memory_order_relaxed);
    lane.busy.store(was_used ? busy + twice - 1 : busy - twice + 1, std::memory_order_release);
  }
}

void Statistics::waiting(int by) {
  const MutexLock lock(waiting_mutex_);
  const uint64_t at = now();
  waited_ns_ += static_cast<uint64_t>(waiters_) * (at - waiters_since_ns_);
  waiters_since_ns_ = at;
  waiters_ += by;
}

StatisticsReading Statistics::read() {
  StatisticsReading reading;
  for (size_t c = 0; c < kCollectives; ++c) {
    CollectiveCounts& counts = reading.collectives[c];
    // Reads the ended calls before the started ones, so that never more have ended than started.
    counts.failed = ends_[c].failed.get();
    counts.completed = ends_[c].completed.get();
    counts.by_caller = calls_[c].express.get();
    counts.completed += counts.by_caller;
    counts.started = calls_[c].submitted.get() + counts.by_caller;
    counts.express = calls_[c].over_board.get() + counts.by_caller;
    counts.bytes = {calls_[c].given.get(), calls_[c].taken.get()};
  }
  for (size_t d = 0; d < kMaxDimensions; ++d) {
    Lane& lane = lanes_[d];
    DimensionCounts& counts = reading.dimensions[d];
    counts.bytes_mapped = lane.bytes_mapped.get();  // read first: never more than bytes_sent
    counts.bytes_sent = lane.bytes_sent.get();
    counts.bytes_received = lane.bytes_received.get();
    counts.messages_sent = lane.messages_sent.get();
    counts.messages_received = lane.messages_received.get();
    const uint64_t busy = lane.busy.load(std::memory_order_acquire);
    counts.busy_ns = ((busy & 1) != 0 ? busy - 1 + 2 * now() : busy) / 2;
    // A phase may have ended just before this thread read the clock. The time in use must never go back.
    uint64_t told = lane.told_ns.load(std::memory_order_relaxed);
    while (told < counts.busy_ns && !lane.told_ns.compare_exchange_weak(told, counts.busy_ns)) {
    }
    counts.busy_ns = std::max(counts.busy_ns, told);
  }
  reading.staging_bytes = staging_.now();
  reading.staging_peak_bytes = staging_.peak();
  const MutexLock lock(waiting_mutex_);
  const uint64_t at = now();
  reading.waited_ns = waited_ns_ + static_cast<uint64_t>(waiters_) * (at - waiters_since_ns_);
  reading.elapsed_ns = at - begin_ns_;
  return reading;
}

}  // namespace trestle
