// A training run under DeFT on simulated links: times, updates and their ages. Pure, any thread.
//
// A link sends one message at a time, in the order in which messages are placed. Messages of the current set are ready
// when the backward pass before has ended. Messages of the next set are ready with their bucket's gradient in this
// iteration. So a link may send a message before the pass in which it was placed. Compute waits in one place: at the
// end of a backward pass with an update, until the messages of that update's set are complete. With capacities of 1000
// permille it never waits. The paper's Preserver does not model staleness, so each update's age is here.
#pragma once

#include <cstdint>
#include <vector>

#include "gradient/deft/queues.h"

namespace trestle {

struct DeftUpdate {
  uint32_t iteration = 0;  // at whose end it is applied
  uint32_t batches = 0;
  // By how many iterations the newest and the oldest batch are older than `iteration`. 0 would be an update without
  // delay; DeFT's ages are at least 1.
  uint32_t newest_age = 0;
  uint32_t oldest_age = 0;
  bool operator==(const DeftUpdate&) const = default;
};

struct DeftMessage {
  uint32_t link = 0;
  uint32_t item = 0;  // of deft_partition
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct DeftRun {
  std::vector<uint64_t> ends_ns;         // per iteration, from the beginning of the first one
  std::vector<uint64_t> waits_ns;        // per iteration, compute's wait before its update
  std::vector<uint32_t> update_batches;  // per iteration, 0: no update
  std::vector<DeftUpdate> updates;
  std::vector<DeftMessage> messages;  // per link in the order in which it sends them
  uint64_t pending = 0;               // batches that no update has
  double iteration_us() const;
  double updates_per_iteration() const;
};

// Errors: those of DeftQueues::make; no iterations.
Result<DeftRun> simulate_deft(const DeftSystem& system, uint32_t iterations, uint32_t capacity_permille = 1000);

// The batches of each update in one cycle. A cycle ends when the queues' state is one that it was before: from there
// everything repeats. The sum is the cycle's number of iterations. Errors: those of DeftQueues::make; no state returns
// within 10000 iterations (kInvalidArgument).
Result<std::vector<uint32_t>> deft_cycle(const DeftSystem& system, uint32_t capacity_permille = 1000);

}  // namespace trestle
