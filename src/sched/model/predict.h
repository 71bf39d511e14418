// A schedule in the model that predicts it (sched/model/second_level.h), phase by phase: for those who want to see why
// it takes as long as predict_ns (sched/select/select.h) says. Pure, any thread.
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
  uint64_t busy_ps = 0;  // carrying a phase
  // Picoseconds, as the dimension's DimensionOrder::order. Whole phases have the link one at a time; in the model of
  // steps the segments of several may alternate, and a phase leaves the link when it is complete.
  std::vector<PhaseTimes> times;
};

struct Prediction {
  uint64_t time_ps = 0;
  std::vector<PredictedLink> links;  // as Schedule::orders
};

// The schedule's orders must hold each phase once and not wait for each other (CHECK).
// blocks: of what all ranks know to be unequal.
Prediction predict(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});
// Its time in the library's model of whole phases, whatever its size.
uint64_t predict_by_phases_ps(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});

// How many segments all ranks send, by the catalog's counts of messages: about what a simulation of every rank has to
// do.
uint64_t segments_sent(const Schedule& schedule, const Topology& topology, const SegmentRule& rule);

}  // namespace trestle
