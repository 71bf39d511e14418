// The collectives of the library: one row says all that holds for a collective wherever it is used.
//
// Plain values, any thread. Adding a collective is an enumerator and a row here, and its number and its function in
// trestle.h; docs/extending.md says what else may follow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/phase_kind.h"

namespace trestle {

// The numbers are the wire format and the C API's, so they never change.
enum class Collective : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendRecv,
  kBarrier,
  kGather,
  kScatter,
  kAllGatherV,
  kReduceScatterV,
  kAllToAllV,
  kGatherV,
  kScatterV,
};

// How much of a buffer a rank's part of a call reads or writes. `count` is the call's.
enum class BufferExtent : uint8_t {
  kNone,          // the collective has no such buffer
  kCount,         // count elements
  kCountPerRank,  // a block of count elements for each rank
  kList,          // a block for each rank, of the lengths and at the places that a list says
  kOwnBlock,      // this rank's block of the list of the other buffer
};

struct CallBuffer {
  BufferExtent extent = BufferExtent::kNone;
  bool at_root_only = false;  // other ranks have none; a list of its blocks is the root's too
};

// The ranks that know how long the blocks are.
enum class BlockKnowledge : uint8_t {
  kEven,      // every rank: all blocks have one length
  kKnown,     // every rank: each is given the whole list
  kPairwise,  // the two ranks between which a block goes
};

// Kinds of phase, each of which does a whole collective at once. A rank that is alone takes the first.
struct PhaseKinds {
  std::array<PhaseKind, 2> kinds{};
  size_t count = 0;

  constexpr PhaseKinds() = default;
  constexpr PhaseKinds(PhaseKind kind) : kinds{kind}, count(1) {}
  constexpr PhaseKinds(PhaseKind first, PhaseKind second) : kinds{first, second}, count(2) {}
  constexpr const PhaseKind* begin() const { return kinds.data(); }
  constexpr const PhaseKind* end() const { return kinds.data() + count; }
};

struct CollectiveRow {
  Collective collective{};
  const char* name = nullptr;      // as nccl-tests prints and accepts it
  const char* function = nullptr;  // of the C API, without the prefix; of a message: the sender's
  // The other C function that runs it, or nullptr: the half of a separated all-reduce, or the receiver of a message.
  const char* other_function = nullptr;
  CallBuffer sent{};      // what a rank's part of a call reads
  CallBuffer received{};  // and writes
  BlockKnowledge blocks = BlockKnowledge::kEven;
  bool reduces = false;                   // its call has an operator
  const char* in_place = "send == recv";  // for people: where the buffers of a call in place lie (in_place_rule)
  bool point_to_point = false;            // between two ranks: no schedule, no place in the order of the collectives
  // What a schedule makes it of: one phase of any of these kinds over all ranks, or reduce-scatter phases, or
  // all-gather phases, or the former and then the latter.
  PhaseKinds whole{};
  bool reduce_scatter_phases = false;
  bool all_gather_phases = false;
  // Small calls may go over the board (express/express.h), which puts results together by this row alone: sums
  // of all ranks, or copies of blocks.
  bool over_board = false;
};

// Buffers of the rows.
inline constexpr CallBuffer kWholeCount{BufferExtent::kCount};
inline constexpr CallBuffer kWholeCountAtRoot{BufferExtent::kCount, true};
inline constexpr CallBuffer kEveryBlock{BufferExtent::kCountPerRank};
inline constexpr CallBuffer kEveryBlockAtRoot{BufferExtent::kCountPerRank, true};
inline constexpr CallBuffer kListedBlocks{BufferExtent::kList};
inline constexpr CallBuffer kListedBlocksAtRoot{BufferExtent::kList, true};
inline constexpr CallBuffer kOwnListedBlock{BufferExtent::kOwnBlock};

// By number.
inline constexpr CollectiveRow kCollectiveRows[] = {
    {.collective = Collective::kAllReduce,
     .name = "allreduce",
     .function = "AllReduce",
     .sent = kWholeCount,
     .received = kWholeCount,
     .reduces = true,
     .whole = PhaseKind::kAllReduce,
     .reduce_scatter_phases = true,
     .all_gather_phases = true,
     .over_board = true},
    {.collective = Collective::kReduceScatter,
     .name = "reducescatter",
     .function = "ReduceScatter",
     .other_function = "AllReduceStart",
     .sent = kEveryBlock,
     .received = kWholeCount,
     .reduces = true,
     .in_place = "recv == send + rank*recvcount",
     .reduce_scatter_phases = true,
     .over_board = true},
    {.collective = Collective::kAllGather,
     .name = "allgather",
     .function = "AllGather",
     .other_function = "AllReduceFinish",
     .sent = kWholeCount,
     .received = kEveryBlock,
     .in_place = "send == recv + rank*count",
     .all_gather_phases = true,
     .over_board = true},
    {.collective = Collective::kBroadcast,
     .name = "broadcast",
     .function = "Broadcast",
     .sent = kWholeCountAtRoot,
     .received = kWholeCount,
     .whole = PhaseKind::kBroadcast,
     .over_board = true},
    {.collective = Collective::kReduce,
     .name = "reduce",
     .function = "Reduce",
     .sent = kWholeCount,
     .received = kWholeCountAtRoot,
     .reduces = true,
     .whole = PhaseKind::kReduce,
     .over_board = true},
    {.collective = Collective::kAllToAll,
     .name = "alltoall",
     .function = "AllToAll",
     .sent = kEveryBlock,
     .received = kEveryBlock,
     .whole = PhaseKind::kAllToAll,
     .over_board = true},
    {.collective = Collective::kSendRecv,
     .name = "sendrecv",
     .function = "Send",
     .other_function = "Recv",
     .sent = kWholeCount,
     .received = kWholeCount,
     .point_to_point = true},
    {.collective = Collective::kBarrier,
     .name = "barrier",
     .function = "Barrier",
     .whole = {PhaseKind::kAllReduce, PhaseKind::kBarrier},
     .over_board = true},
    {.collective = Collective::kGather,
     .name = "gather",
     .function = "Gather",
     .sent = kWholeCount,
     .received = kEveryBlockAtRoot,
     .in_place = "send == recv + rank*count",
     .whole = PhaseKind::kGather,
     .over_board = true},
    {.collective = Collective::kScatter,
     .name = "scatter",
     .function = "Scatter",
     .sent = kEveryBlockAtRoot,
     .received = kWholeCount,
     .in_place = "recv == send + rank*count",
     .whole = PhaseKind::kScatter,
     .over_board = true},
    {.collective = Collective::kAllGatherV,
     .name = "allgatherv",
     .function = "AllGatherV",
     .sent = kOwnListedBlock,
     .received = kListedBlocks,
     .blocks = BlockKnowledge::kKnown,
     .in_place = "send == recv + displs[rank]",
     .all_gather_phases = true},
    {.collective = Collective::kReduceScatterV,
     .name = "reducescatterv",
     .function = "ReduceScatterV",
     .sent = kListedBlocks,
     .received = kOwnListedBlock,
     .blocks = BlockKnowledge::kKnown,
     .reduces = true,
     .in_place = "recv == send + the counts before this rank's",
     .reduce_scatter_phases = true},
    {.collective = Collective::kAllToAllV,
     .name = "alltoallv",
     .function = "AllToAllV",
     .sent = kListedBlocks,
     .received = kListedBlocks,
     .blocks = BlockKnowledge::kPairwise,
     .whole = PhaseKind::kAllToAllV},
    {.collective = Collective::kGatherV,
     .name = "gatherv",
     .function = "GatherV",
     .sent = kWholeCount,
     .received = kListedBlocksAtRoot,
     .blocks = BlockKnowledge::kPairwise,
     .in_place = "send == recv + displs[rank]",
     .whole = PhaseKind::kGatherV},
    {.collective = Collective::kScatterV,
     .name = "scatterv",
     .function = "ScatterV",
     .sent = kListedBlocksAtRoot,
     .received = kWholeCount,
     .blocks = BlockKnowledge::kPairwise,
     .in_place = "recv == send + displs[rank]",
     .whole = PhaseKind::kScatterV},
};
inline constexpr size_t kCollectives = std::size(kCollectiveRows);

// For numbers that come from outside (C API, wire).
constexpr bool is_valid(Collective collective) {
  return static_cast<size_t>(collective) < kCollectives;
}

// Of a valid one, as all that follows.
constexpr const CollectiveRow& row_of(Collective collective) {
  return kCollectiveRows[static_cast<size_t>(collective)];
}

constexpr bool reduces(Collective collective) {
  return row_of(collective).reduces;
}
constexpr bool is_point_to_point(Collective collective) {
  return row_of(collective).point_to_point;
}
// Whether the call's root means anything.
constexpr bool has_root(Collective collective) {
  return row_of(collective).sent.at_root_only || row_of(collective).received.at_root_only;
}
// False: there is nothing but waiting.
constexpr bool moves_data(Collective collective) {
  return row_of(collective).sent.extent != BufferExtent::kNone ||
         row_of(collective).received.extent != BufferExtent::kNone;
}
// Whether `count` is of one block of several.
constexpr bool has_block_per_rank(Collective collective) {
  return row_of(collective).sent.extent == BufferExtent::kCountPerRank ||
         row_of(collective).received.extent == BufferExtent::kCountPerRank;
}
// Blocks of unequal lengths that every rank knows.
constexpr bool has_known_blocks(Collective collective) {
  return row_of(collective).blocks == BlockKnowledge::kKnown;
}
// Blocks of unequal lengths, each known to its two ends only.
constexpr bool has_pairwise_blocks(Collective collective) {
  return row_of(collective).blocks == BlockKnowledge::kPairwise;
}
constexpr bool has_uneven_blocks(Collective collective) {
  return row_of(collective).blocks != BlockKnowledge::kEven;
}

// How the buffers of a call in place lie. A buffer of one block is where that block is in the buffer of all blocks; in
// a gather or a scatter that is at the root only, which has both. Other buffers begin together.
enum class InPlaceRule : uint8_t { kSameBegin, kSentInReceived, kReceivedInSent };
constexpr bool has_all_blocks(const CallBuffer& buffer) {
  return buffer.extent == BufferExtent::kCountPerRank || buffer.extent == BufferExtent::kList;
}
constexpr InPlaceRule in_place_rule(Collective collective) {
  const bool all_sent = has_all_blocks(row_of(collective).sent);
  const bool all_received = has_all_blocks(row_of(collective).received);
  if (all_sent == all_received) return InPlaceRule::kSameBegin;
  return all_received ? InPlaceRule::kSentInReceived : InPlaceRule::kReceivedInSent;
}

// ---- what the compiler checks of the rows; tests/unit/base/collective_test.cpp checks the rest

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < kCollectives; ++i) {
    if (static_cast<size_t>(kCollectiveRows[i].collective) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "row_of() finds a row by the number of its collective");
static_assert(kCollectives == static_cast<size_t>(Collective::kScatterV) + 1, "the last collective has the last row");

}  // namespace trestle
