// Express: small collectives over a board of slots that all ranks share (one host, or one process). The calling thread
// runs them.
//
// The plan is that of the direct algorithm: all ranks publish, then each rank reads all slots and adds them in rank
// order. Sequence numbers are given in call order, so they agree on all ranks. Operations on several streams may still
// run out of order. So every rank publishes its floor (the number of express operations that it has completed in
// order), and a slot is reused only when every rank's floor shows that it was read. Owned by the engine.
// next_sequence() under the communicator's call order; poll() under the rank's progress lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/collective.h"
#include "base/element_range.h"
#include "base/types.h"
#include "express/board.h"
#include "kernels/reduce.h"

namespace trestle {

// One express collective in progress.
struct ExpressCall {
  Collective collective = Collective::kAllReduce;
  ReduceFunction reduce = nullptr;
  ReduceSpec spec;
  const void* factor = nullptr;  // of a pre-multiplied sum: one element, read when the call publishes
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  uint64_t elements = 0;  // `count` of the call
  uint64_t bytes = 0;     // of these elements
  int32_t root = 0;
  bool half = false;  // of a separated all-reduce: elements and bytes are of the whole vector
  uint64_t sequence = 0;
  int32_t arrived = 0;  // ranks seen so far
  bool published = false;
  uint64_t number = 0;     // of the operation
  uint64_t check = 0;      // of the operation (transport/agreement.h)
  int32_t dissenter = -1;  // a rank that published another operation here: this one will never be complete
};

class Express {
 public:
  Express(std::unique_ptr<Board> board, int32_t rank, int32_t ranks, uint64_t most_bytes);

  // Whether a collective goes over the board. Depends only on its arguments, so all ranks agree.
  // half: of a separated all-reduce; count_bytes is then of the whole vector, cut into shards that may differ by an
  // element.
  bool serves(Collective collective, uint64_t count_bytes, bool half = false) const;
  uint64_t next_sequence() { return next_sequence_++; }
  // Memory of the board, at the rank that counts it. Any thread.
  uint64_t memory_bytes() const { return board_->memory_bytes(); }
  // Publishes this rank's part and looks for the others' parts. True: the collective is complete.
  bool poll(ExpressCall& call);
  // The rank that an incomplete call waits for: its part is not here, or it has not read the slot that is to be used
  // again. -1: none.
  int32_t awaited_rank(const ExpressCall& call) const;
  // The operation that the dissenter of a call runs. Its number is right within 2^11 of ours.
  struct Other {
    uint64_t number = 0;
    uint64_t check = 0;
  };
  Other run_by_dissenter(const ExpressCall& call) const;

  // Sleeping. The bell's descriptor is readable when a peer that was awaited has written.
  int event_fd() const { return board_->doorbells().event_fd(); }
  // What a call that poll() has left incomplete waits for: a rank's part, or anything (Doorbells::kAnything).
  int32_t awaited(const ExpressCall& call) const;
  // Rings from now on; then can_go_on() tells whether that is too late for a call.
  void prepare_sleep(int32_t awaited) { board_->doorbells().prepare_sleep(awaited); }
  bool can_go_on(const ExpressCall& call);
  void finish_sleep() { board_->doorbells().finish_sleep(); }

 private:
  bool may_publish(uint64_t sequence);
  void publish(ExpressCall& call);
  void combine(const ExpressCall& call);
  void combine_sums(const ExpressCall& call);
  void combine_copies(const ExpressCall& call);
  void reduce(const ExpressCall& call, uint64_t offset, uint64_t elements, std::byte* recv);
  ElementRange shard(const ExpressCall& call, int32_t rank) const;
  void completed(uint64_t sequence);

  std::unique_ptr<Board> board_;
  const int32_t rank_;
  const int32_t ranks_;
  const uint64_t most_bytes_;
  uint64_t next_sequence_ = 0;
  uint64_t floor_ = 0;           // express operations completed in order
  uint64_t known_floor_ = 0;     // of the slowest rank, as far as was looked
  std::vector<uint64_t> ahead_;  // completed out of order
  std::vector<const std::byte*> sources_;
};

}  // namespace trestle
