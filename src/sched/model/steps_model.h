// The model of steps: one representative rank sends the messages of every phase's algorithm, cut into segments, over
// the links of the dimensions, in exact integers (picoseconds). It is the second level of prediction: unlike the model
// of whole phases (simulate.h) it knows that a step waits for the step before it.
//
// The rules are those of the engine over simulated links (sim/network.h):
//   - A dimension starts its phases in the agreed order. At most in_flight of them are started and not complete.
//   - A link carries one segment at a time, from the first message of the oldest phase that has a segment ready. The
//     segment arrives one latency later, and the segments that depend on it (phase_shape) become ready.
//   - All events of one instant are handled before links choose.
//   - Segments of dimensions that share a resource also occupy that, one at a time, from when both are free. The link
//     stays occupied until the segment has left the resource.
// The cost does not depend on the number of ranks, because long chains of steps are merged.
//
// Compared with the engine over simulated links it is exact for rings, direct exchanges and whole messages, and for
// halving and doubling with up to 16 ranks, which all behave alike (algorithms/halving_doubling.cpp). With 64 ranks,
// and with chunks that do not divide evenly into elements, there are small differences: within 1.5 % for 16x64, 100 MB,
// 2 and 3 segments per message.
//
// A StepsModel belongs to one call of a policy or a prediction and is used by one thread. It caches the shapes that it
// reads from plans.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sched/model/cost.h"
#include "sched/model/segments.h"
#include "sched/model/steps_model_shape.h"
#include "sched/schedule.h"

namespace trestle {

struct StepsOptions {
  SegmentRule segments;
  bool rail_segments = false;  // cut as the engine does on rails of known rates (segment_bytes_at)
  uint32_t window = 0;         // segments of a message that may be sent and not arrived; 0: any number
  bool overheads = true;       // per message and for reductions (RailCost); false: links alone
  bool losses = false;         // where several senders meet at one port (with_losses); simulated links have none
  // Coarser, for planners: further segments of a message, or further messages of a chain, are merged.
  uint32_t most_segments = 1024;
  uint32_t most_messages = 64;
  bool intervals = false;  // fill StepsLink::intervals
};

struct StepsTimes {
  uint64_t start_ps = 0;
  uint64_t end_ps = 0;
};

struct StepsLink {
  uint8_t dimension = kFlat;
  uint64_t busy_ps = 0;
  uint64_t bytes = 0;  // sent by a rank
  // The intervals in which the link was busy without a pause, in order, if requested.
  std::vector<StepsTimes> intervals = {};
};

struct StepsResult {
  bool finished = false;  // false: the agreed orders wait for each other
  uint64_t time_ps = 0;
  std::vector<StepsLink> links;                 // in the order of Schedule::orders
  std::vector<std::vector<StepsTimes>> phases;  // [chunk][stage]
};

// One message of a phase of a certain size, with the times of its segments.
struct StepsMessage {
  uint32_t segments = 1;
  uint64_t segment_ps = 0, last_ps = 0;                    // on the link
  uint64_t resource_segment_ps = 0, resource_last_ps = 0;  // on the shared resource
  uint64_t delay_ps = 0;                                   // from the end on the link to the arrival at the peer
  uint32_t window = UINT32_MAX;
  uint64_t bytes = 0;
  // Segment i waits for needs[first_need + d * segments + i] segments of waits_for[first_wait + d], d < waits.
  uint32_t first_wait = 0;
  uint32_t waits = 0;
  uint32_t first_need = 0;
  // The messages that wait for this one.
  uint32_t first_follower = 0;
  uint32_t followers = 0;
};

struct StepsPhase {
  uint8_t resource = kNoResource;
  std::vector<StepsMessage> messages;
  std::vector<uint32_t> waits_for;
  std::vector<uint32_t> needs;
  std::vector<uint32_t> follower_list;
};

class StepsModel {
 public:
  // blocks: as CostModel's.
  explicit StepsModel(const Topology& topology, const StepsOptions& options = {}, const BlockBytes& blocks = {});
  StepsModel(const StepsModel&) = delete;
  StepsModel& operator=(const StepsModel&) = delete;

  // The schedule's orders must hold each phase once (CHECK).
  StepsResult run(const Schedule& schedule);

 private:
  struct Rail {
    RailCost cost;
    SegmentRule segments;
    uint64_t shared_ps_per_byte = 0;
    uint8_t resource = kNoResource;
  };
  using ShapeKey = std::tuple<uint8_t, PhaseKind, uint16_t, uint32_t>;
  using PhaseKey = std::tuple<uint8_t, PhaseKind, uint16_t, uint64_t, uint64_t, uint32_t>;

  const Rail& rail(uint8_t dimension) const;
  const PhaseShape& shape(const PhaseChoice& choice, uint32_t fixed);
  const StepsPhase& phase(const PhaseChoice& choice, PhaseBytes bytes);
  StepsMessage message(const Rail& rail, const PhaseShape& shape, const ShapeMessage& what, PhaseBytes bytes) const;

  const Topology topology_;
  const StepsOptions options_;
  UnevenLoad uneven_;
  std::vector<Rail> rails_;  // the last one is kFlat
  std::map<ShapeKey, PhaseShape> shapes_;
  std::map<PhaseKey, StepsPhase> phases_;
};

}  // namespace trestle
