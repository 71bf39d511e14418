// Prepared: one collective call, selected, planned and laid out for one rank. Immutable, cached, started any number of
// times.
//
// Everything is symbolic in the buffers: a piece names its buffer (send, recv, staging) and the place in it. Built once
// per PrepareRequest and communicator; shared by the operations that run it; any thread may read it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/prepare/call_options.h"
#include "engine/prepare/custom_op.h"
#include "engine/prepare/layout.h"
#include "engine/prepare/plan_cache.h"
#include "engine/prepare/uneven_blocks.h"
#include "memory/peer_paths.h"
#include "memory/place.h"
#include "plan/plan.h"
#include "sched/schedule.h"
#include "transport/agreement.h"

namespace trestle {

enum class BufferId : uint8_t { kSend, kRecv, kStaging };

struct PieceRef {
  BufferId buffer = BufferId::kSend;
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
};

// The pieces of the blocks of one space: block b is pieces[first[b] .. first[b+1]).
struct BlockTable {
  std::vector<uint32_t> first;
  std::vector<PieceRef> pieces;
};

// A dependency in bytes of the two steps' streams. Before this step goes on to byte my_begin + n of its stream, `step`
// must be done with its bytes up to its_begin + n; before this step's last byte, the one before my_end, with all up to
// its_end. The two ranges have different lengths where blocks of different lengths use the same memory one after the
// other. Without the rule for the last byte, a long block could come while an earlier long block is still being read:
// the short blocks between them would order only their own bytes.
struct ByteDependency {
  uint32_t step = 0;
  uint64_t my_begin = 0;
  uint64_t my_end = 0;
  uint64_t its_begin = 0;
  uint64_t its_end = 0;
  bool whole = false;  // several blocks whose lengths differ: the first byte waits for all of its bytes, too

  // The bytes of `step` that must be done before bytes [0, upto) of this one. At least one: it is done only after what
  // an empty block at its beginning waits for.
  uint64_t needed(uint64_t upto) const {
    if (whole || upto >= my_end) return std::max<uint64_t>(its_end, 1);
    return std::clamp<uint64_t>(its_begin + upto - my_begin, 1, std::max<uint64_t>(its_end, 1));
  }
};

// Bytes of the bounce block of a phase, unless its messages need more.
inline constexpr uint64_t kBounceBytes = uint64_t{64} << 20;

// Where the messages of a step lie in the bounce block of its phase (engine/prepare/bounces.h). A segment in flight has
// a slot of its own, in which all its messages lie one after the other. Those that a device reads where they lie are
// not among them.
struct StepBounce {
  uint64_t offset = 0;
  uint64_t message_bytes = 0;  // of the longest message, rounded up
  uint32_t messages = 0;       // of one segment: the receives of a Reduce, none of a Copy, else one; 0: all go in place
  uint32_t slots = 1;          // segments in flight
  uint32_t before = kNoStep;   // the step that has this place before; it must be complete
  // A Send whose messages go in place. Their places are for parts that go through the host beside them, if they are
  // free (engine/work/host_shares.h). So the step has as many segments in flight as it would have without.
  bool beside = false;
  uint64_t at(uint64_t segment, uint32_t message) const {
    return offset + (segment % slots * messages + message) * message_bytes;
  }
};

// One phase of one chunk, bound to the symbolic buffers.
struct PreparedPhase {
  PhaseChoice choice;
  std::shared_ptr<const Plan> plan;
  std::vector<int32_t> peers;           // group index -> rank in the communicator
  std::vector<uint64_t> logical_bytes;  // of each logical block
  std::vector<uint64_t> logical_begin;  // prefix sums
  // The bytes of each output block, where only two ranks know a block's length and the directions differ
  // (all-to-all-v). logical_bytes are then those of this rank's input.
  std::vector<uint64_t> received_bytes;
  BlockTable input;
  BlockTable output;
  uint64_t scratch_offset = 0;  // in staging
  uint64_t scratch_stride = 0;
  uint64_t segment_bytes = 0;  // of most steps; equal on all ranks of the group
  std::vector<uint64_t> step_bytes;
  std::vector<uint64_t> step_segment_bytes;  // segment_bytes, where messages are not cut by number
  std::vector<ByteDependency> dependencies;  // parallel to plan->dependencies
  bool average_output = false;               // divide the output blocks by the number of ranks when the phase is done
  // The first reductions of an average of small floats, which multiply what ranks contribute (kernels/reduce.h): by
  // index into plan->sources, 1 for what is a sum of such products already. Else nullptr.
  PlanCache::Sums sums;
  std::vector<PeerPath> paths;      // by group index, where the buffers are on a device
  std::vector<StepBounce> bounces;  // by step; empty for buffers in host memory
  uint64_t bounce_bytes = 0;
  uint32_t segments_in_flight = 0;  // of one step
  // Step::after: a third message is under way only while those before it have fewer bytes left than this, which is
  // twice what the link carries in the latency of a step. More keeps the link busy without it.
  uint64_t turn_bytes = 0;
};

// Enough to keep a rail busy while the oldest segment of a step is reduced. Also bounds the memory that a younger phase
// may hold.
inline constexpr uint32_t kSegmentsInFlight = 4;
// Over several rails a send is done when it is acknowledged, and the acknowledgement waits behind data of the other
// direction. All-to-all of 64 MiB by 4 hosts over 1000 and 500 Mbit/s reaches 0.92 of both with 4 segments, 0.97
// with 8.
inline constexpr uint32_t kSegmentsOverRails = 8;

struct Prepared {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  SharedOp custom;  // a user-defined operator or a pre-multiplied sum; else nullptr
  int32_t root = 0;
  bool in_place = false;
  MemoryPlace place = MemoryPlace::kHost;  // of the buffers, and so of the staging
  uint64_t count = 0;                      // as the caller passed it
  Schedule schedule;
  uint32_t stages = 0;                             // the number of phases of the longest chunk
  std::vector<std::vector<PreparedPhase>> phases;  // [chunk][stage]
  uint64_t staging_bytes = 0;
  uint64_t bounce_bytes = 0;   // of the phase that needs most
  uint32_t bounce_blocks = 0;  // phases that may be in flight at the same time
  // A pre-multiplied sum: where the multiplied input is written, chunk by chunk, when the first phase of the chunk
  // starts. The phases use that place as their send buffer.
  enum class Scaled : uint8_t { kNo, kIntoRecv, kIntoStaging } scaled = Scaled::kNo;
  uint64_t scaled_offset = 0;  // in staging
  int32_t ranks = 1;
  bool data = true;  // false: steps run, but no buffer is touched
  // All ranks must have the same value (transport/agreement.h); for point to point message_check().
  uint64_t check = 0;
  // This has left its cache, so its operations are not kept for reuse. Set by the engine, under the mutex of its pool.
  mutable bool forgotten = false;
};

struct PrepareRequest {
  Collective collective = Collective::kAllReduce;
  // Separated half of an all-reduce: a reduce-scatter or all-gather whose whole-vector side is the receive buffer and
  // whose shards are uneven.
  bool half = false;
  // As in the call. all-gather-v, reduce-scatter-v: all blocks together; gather-v, scatter-v: this rank's block;
  // all-to-all-v: all blocks that this rank sends.
  uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  SharedOp custom;  // the operator, where it is not built in; compared by identity
  int32_t root = 0;
  bool in_place = false;
  MemoryPlace place = MemoryPlace::kHost;  // of the buffers; all ranks that have data must agree on it
  // On a device: other devices that have access to it can read the buffers where they lie (memory/peer_paths.h).
  bool open_to_devices = false;
  bool has_data = true;   // false: this rank gives and takes nothing, and the others may not know
  bool captured = false;  // into a graph: its launches come in any order, so never over the board
  int32_t peer = -1;      // of send and recv
  SharedBlocks blocks;    // of a v-variant
  SharedOptions options;  // of a collective
  bool operator==(const PrepareRequest&) const = default;
};

// What the preparations of one request on all ranks have in common, kept for the next rank. One thread.
struct SharedPreparation {
  std::map<uint32_t, std::vector<ElementRange>> units;  // by chunk
  std::optional<uint64_t> schedule_hash;
};

// What preparation needs to know of the communicator.
struct PrepareContext {
  const Topology* topology = nullptr;
  int32_t rank = 0;
  bool check_plans = false;
  // The size of the messages of long blocks between the members of a group. All ranks agree on it.
  uint64_t (*segment_bytes)(const void* self, const std::vector<int32_t>& group) = nullptr;
  const void* self = nullptr;
  PlanCache* plans = nullptr;             // nullptr: every phase gets a plan of its own
  const PeerPaths* peer_paths = nullptr;  // nullptr: there are none
  // How many segments of a step are in flight between the members of a group. nullptr: segments_in_flight.
  uint32_t (*in_flight)(const void* self, const std::vector<int32_t>& group) = nullptr;

  // For simulations and tests only.
  uint32_t segments_per_message = 0;  // not 0: used instead of segment_bytes, whatever the number of pieces
  uint32_t segments_in_flight = kSegmentsInFlight;
  uint64_t bounce_bytes = kBounceBytes;
  bool data = true;  // false: no tables of pieces
  SharedPreparation* shared = nullptr;
};

inline DataPlace data_place(const PrepareRequest& request) {
  if (!request.has_data) return DataPlace::kNone;
  return request.place == MemoryPlace::kDevice ? DataPlace::kDevice : DataPlace::kHost;
}

// A value that must be equal on all ranks that run the request, but for the place of a rank without data. `how` stands
// for the way it is run: kOverBoard, or a hash of the schedule. Each rank decides for itself whether it works in place.
inline constexpr uint64_t kOverBoard = 1;
inline uint64_t check_of(const PrepareRequest& request, uint64_t how) {
  // Lengths that only two ranks know are compared by the messages between them.
  const uint64_t count = has_pairwise_blocks(request.collective) ? 0 : request.count;
  uint64_t what = count * 0x9e3779b97f4a7c15u + static_cast<uint32_t>(request.root);
  if (has_known_blocks(request.collective)) what ^= hash_of_counts(*request.blocks, request.collective);
  what ^= request.options.hash();
  return operation_check(request.collective, request.half, request.type, request.op, splitmix64_mix(what ^ how),
                         data_place(request));
}

// Elements of the whole vector V of a request.
uint64_t vector_elements(const PrepareRequest& request, int32_t ranks);
// Bytes of every rank's block, where all ranks know them and they may differ; else empty.
std::vector<uint64_t> known_block_bytes(const PrepareRequest& request);
Result<std::shared_ptr<const Prepared>> prepare(const PrepareRequest& request, const Schedule& schedule,
                                                const PrepareContext& context);
// A point-to-point message (send: to peer; recv: from peer) as a Prepared of one phase.
Result<std::shared_ptr<const Prepared>> prepare_point_to_point(const PrepareRequest& request, bool sending,
                                                               const PrepareContext& context);
std::string to_string(const Prepared& prepared);  // "allreduce of 1024 float (sum)"

}  // namespace trestle
