// SimCluster: N ranks in one process. The engine and the plans are real, the links and the clock are simulated.
//
// Runs with the same seed are equal. One thread. The cluster owns engines, network and clock; callers own the buffers.
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

// The links of a topology, with the rails that it names. Nominal figures replace what it does not state. overheads:
// links also take the time of messages and reductions (RailCost).
std::vector<SimLink> sim_links(const Topology& topology, bool overheads);

struct SimOptions {
  std::vector<SimLink> links;  // one per dimension
  SimFaults faults;
  SimWork work;  // if its mbps is not 0, reduce_mbps of the links must be 0; else reductions count twice
  uint64_t segment_bytes = 256 * 1024;
  bool check_plans = false;
  uint32_t segments_per_message = 0;  // not 0: instead of segment_bytes
  uint32_t segments_in_flight = kSegmentsInFlight;
  bool data = true;        // false: buffers are not accessed and may be null; for many ranks
  int64_t timeout_ns = 0;  // of an operation, in virtual time; 0: none
};

// The buffers of one rank for one operation.
struct SimBuffers {
  void* send = nullptr;
  void* recv = nullptr;
};

// One operation of all ranks.
struct SimCall {
  PrepareRequest request;
  Schedule schedule;
  std::vector<SimBuffers> buffers;  // by rank
};

class SimCluster {
 public:
  SimCluster(const Topology& topology, const SimOptions& options);

  // Runs the calls, each on its own stream, so they progress together. Rank r starts the calls starts[r] (indices) in
  // that order; it may omit some. Without `starts` it starts all: 0, 1, ... Returns the virtual time in nanoseconds
  // from now until the last rank is done. Errors: an engine fails, or a deadlock; its message says what the ranks wait
  // for. With a timeout, operations that cannot finish fail at their deadline; outcomes() has the result of every rank.
  Result<int64_t> run(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts = {});

  // Results of the last run, by rank: the error, or nothing.
  const std::vector<Failure>& outcomes() const { return outcomes_; }
  uint64_t last_run_ps() const { return last_run_ps_; }
  SimNetwork& network() { return *network_; }
  VirtualClock& clock() { return clock_; }

 private:
  Status start(const std::vector<SimCall>& calls, const std::vector<std::vector<size_t>>& starts);
  // at_once: how many calls the rank starts together.
  Status start_call(const SimCall& call, uint64_t number, int32_t rank, size_t at_once, SharedPreparation& shared);
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
  std::vector<Failure> outcomes_;
  uint64_t last_run_ps_ = 0;
};

}  // namespace trestle
