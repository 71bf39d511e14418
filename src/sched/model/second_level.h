// SecondLevel: predicts the time of a schedule by the model of steps (sched/model/steps_model.h), with the engine's
// segments, window, overheads per message, reductions and losses. Selection compares these times, and predict_ns
// returns them.
//
// Only the operation's bytes decide which model predicts, so all figures of one operation come from one model. Below
// kSecondLevelBytes it is the model of whole phases (sched/model/simulate.h): there chunks hardly help, latency
// decides, and planning should take microseconds. From kSecondLevelBytes on it is the model of steps. Planners search
// with whole phases, which are cheap to simulate. Then the second level chooses among the best of their schedules, at
// most kEvaluations per member of a portfolio.
//
// Belongs to one selection or prediction, used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/model/planned_schedule.h"
#include "sched/model/steps_model.h"

namespace trestle {

inline constexpr uint64_t kSecondLevelBytes = uint64_t{1} << 20;  // Schedule::bytes
inline constexpr size_t kEvaluations = 4;

inline bool has_second_level(uint64_t bytes) {
  return bytes >= kSecondLevelBytes;
}

class SecondLevel {
 public:
  // For schedules of the library: sizes are bytes, segments and overheads are the engine's. blocks: as CostModel's.
  explicit SecondLevel(const Topology& topology, const BlockBytes& blocks = {});
  // For schedules in the units of `scale`. They are converted by in_bytes(..., granule) and run with these options.
  SecondLevel(const Topology& topology, const StepsOptions& options, const ModelScale& scale, uint64_t granule);

  // The orders must hold each phase once and must not wait for each other (CHECK).
  uint64_t time_ps(const Schedule& schedule);
  StepsResult run(const Schedule& schedule);
  // Keeps the `most` schedules with the lowest times, the first ones if equal, and drops the others. Replaces their
  // times by those of the model of steps, and adds those on slow networks. Keeps their order.
  void judge(std::vector<PlannedSchedule>& schedules, size_t most);
  uint64_t evaluations() const { return evaluations_; }

 private:
  struct Units {
    ModelScale scale;
    uint64_t granule = 1;
  };

  StepsModel model_;
  std::optional<StepsModel> slow_;  // with slow unknown networks, if phases on other dimensions could hide behind them
  std::optional<Units> units_;      // empty: bytes
  uint64_t evaluations_ = 0;
};

}  // namespace trestle
