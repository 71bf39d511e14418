// PlannedSchedule: a schedule and its predicted times, and which of two is faster. Value type.
#pragma once

#include <cstdint>

#include "sched/schedule.h"

namespace trestle {

struct PlannedSchedule {
  Schedule schedule;
  uint64_t time_ticks = 0;    // predicted by the request's model; 0 if it moves nothing
  uint64_t phases_ticks = 0;  // if time_ticks comes from the model of steps: the time by whole phases
  uint64_t slow_ticks = 0;    // time by the model of steps if unknown networks are slow; 0: there are none
};

// Ties of the model of steps are common if a shared resource decides. They go to the schedule that is faster if a
// network of unknown rate is slow, because that costs nothing if it is fast. Then to the one that is faster by whole
// phases: that model charges the latency of every step. In the model of steps segments hide it, in reality only partly.
inline bool is_faster(const PlannedSchedule& a, const PlannedSchedule& b) {
  if (a.time_ticks != b.time_ticks) return a.time_ticks < b.time_ticks;
  if (a.slow_ticks != b.slow_ticks) return a.slow_ticks < b.slow_ticks;
  return a.phases_ticks < b.phases_ticks;
}

}  // namespace trestle
