// The candidates of a selection, and the times of a schedule's phases on the links. Both agree with the chosen
// schedule.
#include <gtest/gtest.h>

#include "sched/model/predict.h"
#include "sched/model/steps_model.h"
#include "sched/policy/policies.h"
#include "sched/select/select.h"
#include "support/grids.h"

namespace trestle {
namespace candidates_test {
namespace {

Topology grid() {
  return grid_of({{4, 80'000, 2000}, {4, 40'000, 2000}, {4, 10'000, 2000}});
}

TEST(Candidates, HoldTheSelectedScheduleOnce) {
  const Topology topology = grid();
  for (const Policy& policy : policies()) {
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast}) {
      SelectionRequest request;
      request.collective = collective;
      request.bytes = uint64_t{64} << 20;
      SelectionConfig config;
      config.policy = policy.name;
      const auto candidates = selection_candidates(request, topology, config);
      ASSERT_TRUE(candidates.ok()) << candidates.error().message;
      size_t chosen = 0;
      for (const SelectionCandidate& candidate : candidates.value()) {
        EXPECT_EQ(predict(candidate.schedule, topology).time_ps, candidate.time_ps) << policy.name;
        if (!candidate.chosen) continue;
        ++chosen;
        EXPECT_EQ(candidate.schedule, select_schedule(request, topology, config).value()) << policy.name;
      }
      EXPECT_EQ(chosen, 1u) << policy.name << " " << to_string(collective);
    }
  }
}

TEST(Candidates, AreNoneForOneRank) {
  Topology topology;
  topology.dimensions.emplace_back();
  const auto candidates = selection_candidates({}, topology, {});
  ASSERT_TRUE(candidates.ok());
  EXPECT_TRUE(candidates.value().empty());
}

TEST(Predict, TellsWhenPhasesOfSegmentsRun) {
  const Topology topology = grid();
  SelectionRequest request;
  request.bytes = uint64_t{64} << 20;
  const Schedule schedule = select_schedule(request, topology, {}).value();
  const Prediction prediction = predict(schedule, topology);
  EXPECT_EQ((prediction.time_ps + 999) / 1000, predict_ns(schedule, topology));
  ASSERT_EQ(prediction.links.size(), schedule.orders.size());
  for (size_t l = 0; l < prediction.links.size(); ++l) {
    const PredictedLink& link = prediction.links[l];
    ASSERT_EQ(link.times.size(), schedule.orders[l].order.size());
    EXPECT_LE(link.busy_ps, prediction.time_ps);
    uint64_t start_ps = 0;
    for (const PhaseTimes& times : link.times) {
      EXPECT_GE(times.start_ticks, start_ps) << "phases start in the agreed order";
      start_ps = times.start_ticks;
      EXPECT_LE(times.start_ticks, times.complete_ticks);
      EXPECT_LE(times.complete_ticks, prediction.time_ps);
    }
  }
}

TEST(Predict, TellsWhenEachPhaseHasItsLink) {
  const Topology topology = grid();
  SelectionRequest request;
  request.bytes = uint64_t{1} << 19;  // in the range of the model of whole phases
  const Schedule schedule = select_schedule(request, topology, {}).value();
  const Prediction prediction = predict(schedule, topology);
  EXPECT_EQ((prediction.time_ps + 999) / 1000, predict_ns(schedule, topology));
  ASSERT_EQ(prediction.links.size(), schedule.orders.size());
  for (size_t l = 0; l < prediction.links.size(); ++l) {
    const PredictedLink& link = prediction.links[l];
    ASSERT_EQ(link.times.size(), schedule.orders[l].order.size());
    uint64_t busy_ps = 0;
    uint64_t left_ps = 0;
    for (const PhaseTimes& times : link.times) {
      EXPECT_GE(times.start_ticks, left_ps) << "a link carries one phase at a time";
      left_ps = times.left_ticks;
      busy_ps += left_ps - times.start_ticks;
      EXPECT_LE(times.complete_ticks, prediction.time_ps);
    }
    EXPECT_EQ(busy_ps, link.busy_ps);
  }
}

TEST(Steps, TellWhenLinksAreBusy) {
  const Topology topology = grid();
  SelectionRequest request;
  request.bytes = uint64_t{16} << 20;
  const Schedule schedule = select_schedule(request, topology, {}).value();
  StepsOptions options;
  EXPECT_TRUE(StepsModel(topology, options).run(schedule).links.front().intervals.empty());
  options.intervals = true;
  const StepsResult result = StepsModel(topology, options).run(schedule);
  for (const StepsLink& link : result.links) {
    uint64_t busy_ps = 0;
    uint64_t before_ps = 0;
    for (const StepsTimes& interval : link.intervals) {
      EXPECT_TRUE(busy_ps == 0 || interval.start_ps > before_ps);
      before_ps = interval.end_ps;
      busy_ps += interval.end_ps - interval.start_ps;
    }
    EXPECT_EQ(busy_ps, link.busy_ps);
    EXPECT_LE(before_ps, result.time_ps);
  }
}

}  // namespace
}  // namespace candidates_test
}  // namespace trestle
