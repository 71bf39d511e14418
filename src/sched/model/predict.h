// The times of a schedule's phases in the model that predicts it (sched/model/second_level.h). They explain the result
// of predict_ns. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/model/segments.h"
#include "sched/model/simulate.h"
#include "sched/model/uneven_load.h"
#include "sched/schedule.h"

namespace trestle {

struct PredictedLink {
  uint8_t dimension = kFlat;
  uint64_t busy_ps = 0;  // time in which it carries a phase
  // Picoseconds, in the order of the dimension's DimensionOrder::order. In the model of whole phases the link carries
  // one phase at a time. In the model of steps segments of several phases may alternate, and a phase leaves the link
  // when it is complete.
  std::vector<PhaseTimes> times;
};

struct Prediction {
  uint64_t time_ps = 0;
  std::vector<PredictedLink> links;  // in the order of Schedule::orders
};

// The schedule's orders must hold each phase once and must not wait for each other (CHECK). blocks: the unequal block
// lengths that all ranks know.
Prediction predict(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});
// Its time in nanoseconds.
uint64_t predict_ns(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});
// The schedule's time in the library's model of whole phases, whatever its size.
uint64_t predict_by_phases_ps(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});

// The number of segments that all ranks send, by the catalog's counts of messages. It estimates the work of simulating
// every rank.
uint64_t segments_sent(const Schedule& schedule, const Topology& topology, const SegmentRule& rule);

}  // namespace trestle
