// SecondLevel: predicted time of a schedule by the model of steps (sched/model/steps_model.h), as the engine would run
// it: its segments, its window, overheads per message and for reductions. What selection compares and predict_ns says.
//
// Which model predicts follows from the operation's bytes alone, so that every figure about an operation is of one
// level: below kSecondLevelBytes whole phases (sched/model/simulate.h; there chunks hardly pay, latency decides, and
// planning is to take microseconds), from there on steps. Planners find schedules with whole phases, which are cheap to
// simulate, and let the second level choose among the best of them: at most kEvaluations of each member of a portfolio.
//
// Belongs to one selection or prediction, used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/model/steps_model.h"
#include "sched/policy/policies.h"

namespace trestle {

inline constexpr uint64_t kSecondLevelBytes = uint64_t{1} << 20;  // Schedule::bytes
inline constexpr size_t kEvaluations = 4;

inline bool has_second_level(uint64_t bytes) {
  return bytes >= kSecondLevelBytes;
}

class SecondLevel {
 public:
  // Of the library: sizes are bytes, segments and overheads as the engine has them.
  // blocks: as CostModel's.
  explicit SecondLevel(const Topology& topology, const BlockBytes& blocks = {});
  // Of schedules in the units of `scale`, which are run as in_bytes(..., granule) by the model of these options.
  SecondLevel(const Topology& topology, const StepsOptions& options, const ModelScale& scale, uint64_t granule);

  // The orders must hold each phase once and not wait for each other (CHECK).
  uint64_t time_ps(const Schedule& schedule);
  StepsResult run(const Schedule& schedule);
  // Replaces the times of the `most` schedules that had the lowest, and drops the others; equal ones: the first stay.
  // What stays keeps its order.
  void judge(std::vector<PlannedSchedule>& schedules, size_t most);
  uint64_t evaluations() const { return evaluations_; }

 private:
  struct Units {
    ModelScale scale;
    uint64_t granule = 1;
  };

  StepsModel model_;
  std::optional<Units> units_;  // none: bytes
  uint64_t evaluations_ = 0;
};

}  // namespace trestle
