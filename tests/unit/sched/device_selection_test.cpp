// What selection makes of memory of devices: a step costs much, a byte little.
#include <gtest/gtest.h>

#include <string>

#include "algorithms/catalog.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/select/select.h"
#include "support/grids.h"
#include "topology/device_topology.h"

namespace trestle {
namespace device_selection_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Topology flat(int32_t ranks, TransportKind transport) {
  return even_grid({ranks}, {.transport = transport});
}

Schedule chosen(const Topology& topology, uint64_t bytes) {
  return select_schedule({Collective::kAllReduce, bytes, 4}, topology, {}).value();
}

// Of one chunk, one phase after the other.
uint64_t steps_of(const Schedule& schedule, const Topology& topology) {
  uint64_t steps = 0;
  for (const PhaseChoice& phase : schedule.chunks.front().phases) {
    const Algorithm& row = algorithms()[phase.algorithm];
    steps += row.cost(phase.kind, group_size(topology, phase)).steps;
  }
  return steps;
}

const DeviceSpeeds& h100() {
  return nominal_speeds(90);
}

TEST(DeviceSelection, TakesOneStepWhereAStepCostsMoreThanTheBytes) {
  for (const int32_t ranks : {2, 4, 8}) {
    for (const DeviceLink& link :
         {DeviceLink{DeviceWay::kOneDevice, h100().memory_mbps}, DeviceLink{DeviceWay::kPeers, h100().nvlink_mbps}}) {
      const Topology devices = device_topology(flat(ranks, TransportKind::kShm), {{link}, 1});
      for (const uint64_t bytes : {8u, 1u << 10, 64u << 10, 256u << 10}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + to_string(link.way) + ", " + std::to_string(bytes));
        EXPECT_EQ(steps_of(chosen(devices, bytes), devices), 1u);
      }
    }
  }
}

// Two ranks send as many bytes in one step.
TEST(DeviceSelection, SpreadsTheSumOfManyBytesOverTheRanks) {
  for (const int32_t ranks : {4, 8}) {
    for (const DeviceWay way : {DeviceWay::kOneDevice, DeviceWay::kPeers, DeviceWay::kHost}) {
      const Topology devices = device_topology(flat(ranks, TransportKind::kShm), {{{way, h100().nvlink_mbps}}, 1});
      EXPECT_GT(steps_of(chosen(devices, 256 * kMiB), devices), 1u);
    }
  }
}

// What would be chosen for host memory has a step for every rank or two there.
TEST(DeviceSelection, IsFasterThanTheChoiceForHostMemory) {
  const Topology host = flat(8, TransportKind::kShm);
  const Topology devices = device_topology(host, {{{DeviceWay::kPeers, h100().nvlink_mbps}}, 1});
  for (const uint64_t bytes : {16u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20}) {
    const uint64_t now = predict_ns(chosen(devices, bytes), devices);
    EXPECT_LT(now * 3, predict_ns(chosen(host, bytes), devices) * 2) << bytes;
  }
}

// Ranks in one order: whether they are called a dimension or all of them changes nothing.
TEST(DeviceSelection, OneDimensionCostsAsMuchAsAllRanks) {
  const Topology devices =
      device_topology(flat(4, TransportKind::kShm), {{{DeviceWay::kPeers, h100().nvlink_mbps}}, 1});
  Schedule schedule = chosen(devices, 64 * kMiB);
  const uint64_t as_chosen = predict_ns(schedule, devices);
  const bool is_flat = schedule.chunks.front().phases.front().dimension == kFlat;
  for (ChunkSchedule& chunk : schedule.chunks) {
    for (PhaseChoice& phase : chunk.phases) phase.dimension = is_flat ? uint8_t{0} : kFlat;
  }
  for (DimensionOrder& order : schedule.orders) order.dimension = is_flat ? uint8_t{0} : kFlat;
  EXPECT_EQ(predict_ns(schedule, devices), as_chosen);
}

}  // namespace
}  // namespace device_selection_test
}  // namespace trestle
