// The model of steps: one representative rank, every phase as the messages of its algorithm, cut into segments, on the
// links of the dimensions, in exact integers (picoseconds). The second level of prediction: it knows what the model of
// whole phases (simulate.h) does not, that a step waits for the step before it.
//
// Rules, which are those of the engine over simulated links (sim/network.h):
//   - A dimension starts its phases in the agreed order, at most in_flight of them started and not complete.
//   - A link carries one segment at a time: of the phases started the oldest that has a segment ready, of its messages
//     the first. It arrives one latency later, and what follows it (phase_shape) becomes ready.
//   - What becomes free or arrives at an instant is looked at together before links choose.
//   - Segments of dimensions that share a resource also occupy that, one at a time, from when both are free; the link
//     stays occupied until the segment has left the resource.
// The cost does not depend on the number of ranks: long chains of steps are drawn together.
//
// Against the engine over simulated links it is exact for rings, direct exchanges and whole messages, and for halving
// and doubling of up to 16 ranks, who are alike (algorithms/halving_doubling.cpp). Of 64 ranks some differ a little,
// and so do chunks that no number of elements divides: 16x64, 100 MB, 2 and 3 segments a message: within 1.5 %.
//
// A StepsModel belongs to one call of a policy or a prediction and is used by one thread; it keeps what it has read off
// plans between runs.
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
  bool rail_segments = false;  // segments as the engine cuts them on rails of known rates (segment_bytes_at)
  uint32_t window = 0;         // segments of a message that may be sent and not there yet; 0: any number
  bool overheads = true;       // per message and for reductions (RailCost); false: links alone
  // Coarser, for planners: more segments of a message, or messages of a chain, than this are drawn together.
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
  uint64_t bytes = 0;                      // sent by a rank
  std::vector<StepsTimes> intervals = {};  // in which it was busy without a pause, in order, where asked for
};

struct StepsResult {
  bool finished = false;  // false: the agreed orders wait for each other
  uint64_t time_ps = 0;
  std::vector<StepsLink> links;                 // as Schedule::orders
  std::vector<std::vector<StepsTimes>> phases;  // [chunk][stage]
};

// One message of a phase of a certain size, ready to be timed.
struct StepsMessage {
  uint32_t segments = 1;
  uint64_t segment_ps = 0, last_ps = 0;                    // of the link
  uint64_t resource_segment_ps = 0, resource_last_ps = 0;  // of the shared resource
  uint64_t delay_ps = 0;                                   // from the link to the peer
  uint32_t window = UINT32_MAX;
  uint64_t bytes = 0;
  // Segment i waits for needs[first_need + d * segments + i] segments of waits_for[first_wait + d], d < waits.
  uint32_t first_wait = 0;
  uint32_t waits = 0;
  uint32_t first_need = 0;
  // Messages that wait for this one.
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
