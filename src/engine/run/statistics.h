// Statistics: the counters of one rank of a communicator: calls, bytes, waiting, staging, and per dimension the traffic
// and the time in use.
//
// Owned by the engine. Every counter has one writer at a time, under a lock that is held there anyway. So counting
// costs no atomic read-modify-write on the path of a call or a message. The sections below name the lock of the
// writers. Any thread may call read() at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/counter.h"
#include "base/mutex.h"
#include "base/types.h"
#include "engine/prepare/call_bytes.h"
#include "topology/topology.h"

namespace trestle {

struct CollectiveCounts {
  uint64_t started = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t express = 0;  // of those started
  // Of those started: run to their end by the calling thread.
  uint64_t by_caller = 0;
  CallBytes bytes;  // of those started
  CollectiveCounts& operator+=(const CollectiveCounts& other);
};

// Messages between this rank and ranks that differ from it in this dimension and in none further out.
struct DimensionCounts {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t bytes_mapped = 0;  // of those sent: read by the peer directly in this rank's memory
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t busy_ns = 0;  // time with at least one phase in flight
};

struct StatisticsReading {
  std::array<CollectiveCounts, kCollectives> collectives;
  std::array<DimensionCounts, kMaxDimensions> dimensions;
  uint64_t elapsed_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t staging_bytes = 0;
  uint64_t staging_peak_bytes = 0;
  CollectiveCounts total() const;
};

class Statistics {
 public:
  // dimension_of: by rank, the outermost dimension in which it differs from this one; kFlat for this one. Empty:
  // messages count for no dimension.
  Statistics(Clock* clock, std::vector<uint8_t> dimension_of);

  // ---- in call order (the communicator's lock)
  // The calling thread ran the collective to its end.
  void ran_express(Collective collective, const CallBytes& bytes) {
    Calls& calls = calls_[static_cast<size_t>(collective)];
    calls.express.add(1);
    calls.given.add(bytes.given);
    calls.taken.add(bytes.taken);
  }
  // An operation was made for the call; ended() will follow.
  void submitted(Collective collective, const CallBytes& bytes, bool over_board);

  // ---- under the rank's progress lock
  void ended(Collective collective, bool failed);
  void sent(int32_t peer, uint64_t bytes, bool mapped) {
    Lane& lane = lanes_[lane_of(peer)];
    lane.bytes_sent.add(bytes);
    lane.messages_sent.add(1);
    if (mapped) lane.bytes_mapped.add(bytes);
  }
  void received(int32_t peer, uint64_t bytes) {
    Lane& lane = lanes_[lane_of(peer)];
    lane.bytes_received.add(bytes);
    lane.messages_received.add(1);
  }
  // The bit of the peer's dimension in a mask of the dimensions that a phase uses.
  uint32_t dimension_bit(int32_t peer) const { return uint32_t{1} << lane_of(peer); }
  void phase_started(uint32_t dimensions) { change_phases(dimensions, 1); }
  void phase_ended(uint32_t dimensions) { change_phases(dimensions, -1); }

  // ---- any thread
  // A caller begins (1) or ends (-1) to wait.
  void waiting(int by);
  ByteMeter& staging() { return staging_; }
  const ByteMeter& staging() const { return staging_; }
  StatisticsReading read();

 private:
  // One cache line per collective, so that a collective that is called a million times touches only one.
  struct alignas(64) Calls {
    Counter express;  // run to the end by their callers
    Counter given;
    Counter taken;
    Counter submitted;
    Counter over_board;  // of those submitted
  };
  struct Ends {
    Counter completed;
    Counter failed;
  };
  struct Lane {
    Counter bytes_sent;
    Counter bytes_received;
    Counter bytes_mapped;
    Counter messages_sent;
    Counter messages_received;
    uint32_t phases = 0;  // in flight
    // One word, so that a reader never sees half of a change. Twice the time in use so far; while in use, minus twice
    // the time at which this use began, plus 1.
    std::atomic<uint64_t> busy{0};
    std::atomic<uint64_t> told_ns{0};  // the largest value that a reader was given
  };
  static constexpr uint8_t kNowhere = kMaxDimensions;  // lane of messages to oneself

  size_t lane_of(int32_t peer) const {
    const auto i = static_cast<size_t>(peer);
    return i < lane_of_.size() ? lane_of_[i] : kNowhere;
  }
  uint64_t now() const { return clock_ != nullptr ? static_cast<uint64_t>(clock_->now_ns()) : 0; }
  void change_phases(uint32_t dimensions, int by);

  Clock* const clock_;
  const std::vector<uint8_t> lane_of_;
  const uint64_t begin_ns_;
  std::array<Calls, kCollectives> calls_;
  alignas(64) std::array<Ends, kCollectives> ends_;
  std::array<Lane, kMaxDimensions + 1> lanes_;
  ByteMeter staging_;
  Mutex waiting_mutex_;
  int waiters_ TRESTLE_GUARDED_BY(waiting_mutex_) = 0;
  uint64_t waited_ns_ TRESTLE_GUARDED_BY(waiting_mutex_) = 0;  // until waiters_ changed last
  uint64_t waiters_since_ns_ TRESTLE_GUARDED_BY(waiting_mutex_) = 0;
};

}  // namespace trestle
