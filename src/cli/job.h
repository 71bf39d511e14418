// Job: this rank's communicator in a subcommand that runs on every rank, through the public header like anybody's
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

// The library's code and sentence, if it failed.
Status said(trestleResult_t result, trestleComm_t comm);

class Job {
 public:
  // Joins the ranks that the launcher has started, as `topology` says and nothing else: its numbers are all that the
  // cost model gets.
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
  // Everybody's, by rank. At most 1023 bytes without zeros.
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
