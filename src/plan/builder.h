// PlanBuilder: writes a Plan step by step. The author of an algorithm states what moves where, in an order that would
// be correct if the steps ran one after the other. The builder numbers the messages and derives which steps really have
// to wait for which.
//
// A value on the stack of an algorithm's build function, one thread. A wrong use (a block outside its space, a peer
// outside the group) is a bug of the algorithm: CHECK.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/cells.h"
#include "plan/plan.h"

namespace trestle {

inline BlockRange input(uint32_t first, uint32_t count = 1) {
  return {Space::kInput, first, count};
}
inline BlockRange output(uint32_t first, uint32_t count = 1) {
  return {Space::kOutput, first, count};
}
inline BlockRange scratch(uint32_t first, uint32_t count = 1) {
  return {Space::kScratch, first, count};
}

// A source of a reduce: a range of this rank's blocks, or the next message of a peer.
struct Operand {
  int32_t peer = kLocal;
  BlockRange blocks;

  Operand(BlockRange local)
      : blocks(local) {}  // NOLINT(google-explicit-constructor): `reduce(output(0), {input(0), from(1)}, 0)`
  static Operand from(int32_t peer) { return Operand(peer); }

 private:
  explicit Operand(int32_t from) : peer(from) {}
};
inline Operand from(int32_t peer) {
  return Operand::from(peer);
}

class PlanBuilder {
 public:
  // A plan of `blocks` logical blocks for this request. turned: see Plan::turned.
  PlanBuilder(const PlanRequest& request, uint32_t blocks, uint32_t turned = 0);

  // In all of these, `logical_first` is the logical block at position 0 of every operand.
  void send(int32_t peer, BlockRange source, uint32_t logical_first);
  void recv(int32_t peer, BlockRange destination, uint32_t logical_first);
  // Adds no step if both ranges are the same memory, as in place.
  void copy(BlockRange destination, BlockRange source, uint32_t logical_first);
  // The step that was added last takes its turn after `step` (Step::after): a send after a send, a receive after a
  // receive. last() is that step's number.
  void in_turn_after(uint32_t step);
  uint32_t last() const;
  // destination = left fold of the sources in this order. A source may be the destination itself, block by block.
  void reduce(BlockRange destination, const std::vector<Operand>& sources, uint32_t logical_first);

  // Returns the plan. The builder cannot be used afterwards.
  Plan finish() &&;

 private:
  struct Access {
    uint32_t step = 0;
    uint32_t position = 0;
  };
  // The accesses to a cell since it was last written: all that a later step may have to wait for. Older accesses need
  // not be kept, because the write waited for them.
  struct CellHistory {
    bool written = false;
    Access writer;
    std::vector<Access> readers;
  };
  struct Edge {
    uint32_t step = 0;
    uint32_t mine = 0;
    uint32_t its = 0;
  };

  void check_peer(int32_t peer) const;
  void add_local_source(const BlockRange& blocks);
  void close(Step step);
  void derive_reads(const Step& step);
  void derive_writes(const Step& step);
  void store_edges(Step& step);
  CellHistory& history(uint32_t cell);

  Plan plan_;
  Cells cells_;
  std::vector<uint32_t> sent_;      // number of messages so far, by peer
  std::vector<uint32_t> received_;  // number of messages so far, by peer
  std::vector<CellHistory> histories_;
  std::vector<Edge> edges_;  // of the step being closed
};

}  // namespace trestle
