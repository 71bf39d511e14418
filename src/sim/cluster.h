// SimCluster: N ranks in one process: the real engine and the real plans over simulated links and a virtual clock.
//
// A seed makes a run repeat exactly. One thread. The cluster owns engines, network and clock; callers own buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/prepare/prepared.h"
#include "engine/run/engine.h"
#include "sim/network.h"
#include "sim/virtual_clock.h"
#include "sim/work_queue.h"
#include "topology/topology.h"

namespace trestle {

// The links that a topology describes, nominal figures where it is silent. overheads: also what messages and reductions
// cost (RailCost); false: links alone.
std::vector<SimLink> sim_links(const Topology& topology, bool overheads);

struct SimOptions {
  std::vector<SimLink> links;  // one per dimension
  SimFaults faults;
  SimWork work;  // with `mbps`: links' reduce_mbps should be 0, or reductions are counted twice
  uint64_t segment_bytes = 256 * 1024;
  bool check_plans = false;
  uint32_t segments_per_message = 0;  // not 0: instead of segment_bytes
  uint32_t segments_in_flight = kSegmentsInFlight;
  bool data = true;        // false: no buffer is touched, they may be null; for many ranks
  int64_t timeout_ns = 0;  // of an operation, in virtual time; 0: none
};

// The buffers of one rank for one operation.
struct SimBuffers {
  void* send = nullptr;
  void* recv = nullptr;
};

// One operation of all ranks; operations with different streams progress together.
struct SimCall {
  PrepareRequest request;
  Schedule schedule;
  std::vector<SimBuffers> buffers;  // by rank
};

class SimCluster {
 public:
  SimCluster(const Topology& topology, const SimOptions& options);

  // Runs the calls, each on a stream of its own; rank r starts them in the order starts[r] (indices into calls, not
  // necessarily all; without starts: 0, 1, ...). Returns the virtual time from now until the last rank is done,
  // nanoseconds. An engine's failure, or a deadlock (nothing moves, nothing is going to happen), is an error that says
  // what the stuck ranks await. Where operations have a timeout, those that cannot end do so by their deadline:
  // outcomes() has every rank's.
  Result<int64_t> run(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts = {});

  // Of the last run, by rank: nothing, or the error with which it ended.
  const std::vector<std::optional<Error>>& outcomes() const { return outcomes_; }
  uint64_t last_run_ps() const { return last_run_ps_; }
  SimNetwork& network() { return *network_; }
  VirtualClock& clock() { return clock_; }

 private:
  Status start(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts);
  Status start_call(const SimCall& call, uint64_t number, int32_t rank, SharedPreparation& shared);
  bool drive_awake();
  bool expire();
  Status stuck() const;
  Status collect();
  static uint64_t segment_bytes(const void* self, const std::vector<int32_t>& group);

  const Topology topology_;
  const SimOptions options_;
  VirtualClock clock_;
  std::unique_ptr<SimNetwork> network_;
  std::vector<std::shared_ptr<Engine>> engines_;
  std::vector<std::vector<std::shared_ptr<Stream>>> streams_;  // [rank][call]
  uint64_t next_number_ = 0;
  PlanCache plans_;  // of all ranks
  std::vector<int32_t> awake_;
  size_t busy_ranks_ = 0;
  std::vector<std::optional<Error>> outcomes_;
  uint64_t last_run_ps_ = 0;
};

}  // namespace trestle
