// Job: this rank's communicator in a subcommand that runs on every rank. It uses the public header only, like any
// program.
//
// Owned by the subcommand, its thread only.
#pragma once

#include <trestle/trestle.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// All ranks in one dimension, for jobs that only exchange a few bytes.
Topology flat_topology(int ranks);

// The library's error code and sentence if the call failed.
Status said(trestleResult_t result, trestleComm_t comm);

class Job {
 public:
  // Joins the ranks that the launcher has started. The communicator has `topology`'s dimensions, and the cost model
  // uses only its numbers.
  static Result<Job> join(const Topology& topology);
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;
  ~Job();

  trestleComm_t comm() const { return comm_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  const Topology& topology() const { return topology_; }
  Status synchronize() const { return said(trestleCommSynchronize(comm_), comm_); }
  Status barrier() const;
  // The texts of all ranks, by rank. A text has at most 1023 bytes and no zero bytes.
  Result<std::vector<std::string>> all_gather(const std::string& mine) const;
  Status largest(std::vector<int64_t>& values) const;

 private:
  Job() = default;
  trestleComm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
  Topology topology_;
};

}  // namespace trestle
