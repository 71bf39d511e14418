// Plan: the straight-line steps of ONE phase for ONE rank of a group, on symbolic blocks. A value: flat, pointer-free,
// comparable.
//
// The data of a phase is cut into `blocks` logical blocks. The engine knows their lengths, which are equal on all
// ranks. A plan moves ranges of blocks between three spaces of each rank: input (read-only), output and scratch. Input
// and output blocks stand for logical blocks as this table says. A scratch block may hold any logical block, so
// every step names the logical range it moves: position i of each of its operands holds logical block `logical_first +
// i`.
//
//   kind            input blocks            output blocks                     in place: same memory
//   reduce-scatter  n: logical 0..n-1       1: logical `me`                   output 0 = input me
//   all-gather      1: logical `me`         n: logical 0..n-1                 output me = input 0
//   all-reduce      b: logical 0..b-1       b: logical 0..b-1                 output i = input i
//   reduce          b: logical 0..b-1       b at the root, else 0             output i = input i (root)
//   broadcast       b at the root, else 0   b: logical 0..b-1                 output i = input i (root)
//   all-to-all      b: c for each peer      b: c from each peer               output i = input i
//   gather          1: logical `me`         n at the root, else 0             output me = input 0 (root)
//   scatter         n at the root, else 0   1: logical `me`                   output 0 = input me (root)
//   barrier         1                       1                                 output 0 = input 0
//   send            b                       0 (group of two: index 0 sends)   -
//   recv            0                       b (group of two: index 1)         -
//   (n = group size; b = Plan::blocks, chosen by the algorithm: 1 tree, 2 double tree, n for scatter-based ones;
//    c = parts_of(plan): b / n)
//
// All-to-all: input blocks p*c to p*c + c - 1 go to peer p. They are equal parts of what p gets (nth_range). Part k of
// all ranks has the same length, so a step's logical range says only how many blocks it moves and which parts they are,
// for any p.
//
// Barrier: blocks of zero bytes, only the messages matter. Every rank must have heard of every other one at the end, as
// often as it likes: unlike a sum, a barrier may take a contribution twice. An all-reduce of zero bytes is a barrier
// too.
//
// All-to-all-v, gather-v, scatter-v: the same table. Only two ranks know the length of a block: the rank whose input it
// is and the rank whose output it is. So every block goes directly from the one to the other.
//
// Messages: the k-th message to a peer (Send steps in plan order) matches the k-th message from us there (Recv steps
// and peer sources of Reduce steps, in plan order).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/phase_kind.h"

namespace trestle {

const char* to_string(PhaseKind kind);

enum class Space : uint8_t { kInput, kOutput, kScratch };

struct BlockRange {
  Space space = Space::kInput;
  uint32_t first = 0;
  uint32_t count = 1;
  bool operator==(const BlockRange&) const = default;
};

enum class StepKind : uint8_t {
  kSend,    // the one local source -> peer
  kRecv,    // peer -> destination
  kCopy,    // the one local source -> destination
  kReduce,  // left fold of the sources, in order, -> destination; sources may be local or messages of peers
};

inline constexpr int32_t kLocal = -1;

struct Source {
  int32_t peer = kLocal;  // index in the group, or kLocal
  BlockRange blocks;      // kLocal: the blocks; a peer: unused
  uint32_t message = 0;   // a peer: number of the message from that peer
  bool operator==(const Source&) const = default;
};
constexpr bool is_peer_source(const Source& source) {
  return source.peer != kLocal;
}

// "Blocks [my_first, my_first+count) of my step's range may proceed when step `step` has finished its blocks
// [its_first, ...)", both positions relative to the steps' own ranges. The builder derives these (read-after-write,
// write-after-read, write-after-write). The engine converts blocks to bytes, so that segment i of a step may follow
// segment i of another.
struct Dependency {
  uint32_t step = 0;
  uint32_t my_first = 0;
  uint32_t its_first = 0;
  uint32_t count = 0;
  bool operator==(const Dependency&) const = default;
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

struct Step {
  StepKind kind = StepKind::kCopy;
  int32_t peer = kLocal;       // kSend, kRecv
  uint32_t message = 0;        // kSend: number of the message to peer; kRecv: from peer
  BlockRange destination;      // kRecv, kCopy, kReduce
  uint32_t logical_first = 0;  // first logical block moved
  uint32_t blocks = 1;         // number of blocks moved
  uint32_t first_source = 0;   // index into Plan::sources
  uint32_t sources = 0;
  uint32_t first_dependency = 0;  // index into Plan::dependencies
  uint32_t dependencies = 0;
  // kSend after kSend, kRecv after kRecv: this message takes its turn after that of an earlier step, so that messages
  // of several peers do not meet at a port. It begins when all segments of the earlier message are under way and at
  // most one earlier message is not complete. Where messages are too short to keep the link busy, more may be under
  // way, but with two peers at most. All that are under way share one window of segments in flight. No data depends on
  // it.
  uint32_t after = kNoStep;
  bool operator==(const Step&) const = default;
};
// Whether the step is a message. Copies and reductions are work on this rank's data, though a Reduce has messages too.
constexpr bool is_message(const Step& step) {
  return step.kind == StepKind::kSend || step.kind == StepKind::kRecv;
}

struct Plan {
  PhaseKind kind = PhaseKind::kAllReduce;
  int32_t group_size = 1;
  int32_t me = 0;
  int32_t root = 0;       // reduce, broadcast, gather, scatter
  bool in_place = false;  // the dependencies respect the aliasing of the table above
  uint32_t blocks = 1;    // logical blocks of the phase
  // For reduce-scatter, all-gather and all-reduce of a power of two of blocks. This plan's block i (of an input or
  // output with all blocks, and logical) is block i ^ turned of the table above. So ranges can begin with the blocks
  // that are needed first.
  uint32_t turned = 0;
  uint32_t scratch = 0;  // scratch blocks, each as long as the longest logical block
  std::vector<Step> steps;
  std::vector<Source> sources;
  std::vector<Dependency> dependencies;
  bool operator==(const Plan&) const = default;
};

// The request for a plan, passed to an algorithm.
struct PlanRequest {
  PhaseKind kind = PhaseKind::kAllReduce;
  int32_t group_size = 1;
  int32_t me = 0;
  int32_t root = 0;
  bool in_place = false;
};

// Number of input/output blocks of a plan with these parameters (the table above).
uint32_t input_blocks(const Plan& plan);
uint32_t output_blocks(const Plan& plan);
// Logical blocks of each rank: 1 but for an all-to-all whose algorithm cuts what a rank sends to another.
uint32_t parts_of(const Plan& plan);

}  // namespace trestle
