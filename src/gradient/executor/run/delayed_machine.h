// DelayedMachine: decides which part of which bucket is handed to which link, when, and which results are due (DeFT,
// arXiv 2503.16815). A pure state machine without a clock: the scheduler's thread feeds it with real events, and tests
// with those of a virtual clock.
//
// One thread at a time. DeftQueues decides, by the plan and the number of steps alone. So all ranks hand the same
// messages to a link, in the same order, whatever the order of their gradients. A link completes messages in the order
// in which it got them. Steps count from 0.
//
// A set is the gradients of some steps, summed before they travel. Sets have numbers from 0, and each has one result.
// The gradients of the present step belong to the set filling(). A set's result is due in a later step: to each tensor
// when its gradient is ready in that step.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "gradient/deft/queues.h"

namespace trestle {

class DelayedMachine {
 public:
  // An item of a set. Items as DeftQueues numbers them.
  struct Issue {
    uint32_t item = 0;
    uint64_t set = 0;
    bool operator==(const Issue&) const = default;
  };
  // The result that a tensor gets in a step.
  struct Due {
    uint64_t step = 0;
    uint32_t batches = 0;  // of the set; 0: no result in this step
    uint64_t set = 0;
    bool operator==(const Due&) const = default;
  };

  // queues: fresh ones. buckets: their tensors, in forward order, all of them.
  DelayedMachine(DeftQueues queues, std::vector<TensorGroup> buckets);

  // ---- events
  // A gradient is ready, and was added to the set filling(). Once per tensor and step, in any order, and not before
  // what was due to the tensor in the step before was taken (CHECKed).
  void ready(uint32_t tensor);
  // The oldest message of the link that was issued and not completed is complete.
  void complete(uint32_t link);

  // ---- decisions
  uint64_t filling() const { return filling_; }
  // The message to put on the link now, if there is one. It counts as issued. Ask until there is none.
  std::optional<Issue> next(uint32_t link);
  // The message that complete() will complete.
  Issue oldest(uint32_t link) const;
  // The result that is due to the tensor, if all its messages are complete. Then it counts as given.
  std::optional<Due> take(uint32_t tensor);
  // Whether the item has travelled, or is on its way, for that set or a later one.
  bool issued(uint32_t item, uint64_t set) const { return issued_[item] > set; }

  uint64_t steps() const { return step_; }  // whose gradients are all ready
  // Nothing is on its way, may be issued, or is due.
  bool idle() const;
  const DeftQueues& queues() const { return queues_; }
  const std::vector<TensorGroup>& buckets() const { return buckets_; }

 private:
  struct Queued {
    Issue what;
    uint64_t steps = 0;  // it may be issued when the whole bucket was ready in so many steps
  };
  void begin_step();
  void queue(const DeftSends& sends, uint64_t set, uint64_t steps);
  bool released(const Queued& queued) const;
  bool bucket_complete(uint32_t bucket, uint64_t set) const;

  DeftQueues queues_;
  const std::vector<TensorGroup> buckets_;
  std::vector<uint32_t> bucket_of_;                   // by tensor
  std::vector<std::deque<Queued>> queued_;            // by link
  std::vector<std::deque<Issue>> on_link_;            // by link: issued and not complete
  std::vector<uint64_t> ready_;                       // by bucket: gradients, over all steps
  std::vector<uint64_t> issued_;                      // by item: for how many sets it was issued
  std::vector<uint64_t> items_in_;                    // by bucket: how many items it has
  std::array<std::vector<uint64_t>, 2> complete_in_;  // of even and of odd sets, by bucket: messages, over all sets
  std::vector<std::optional<Due>> due_;               // by tensor
  uint64_t ready_count_ = 0;
  uint64_t due_count_ = 0;
  uint64_t step_ = 0;
  uint64_t filling_ = 0;
  // Of the present step:
  uint32_t due_batches_ = 0;
  uint64_t next_filling_ = 0;
};

}  // namespace trestle
