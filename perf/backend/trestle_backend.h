// Trestle as a backend: the communicators and streams of Ranks. Threads: see backend.h.
//
// Buffers are memory of the ranks' GPUs, if they have any, or host memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/driver/ranks.h"

namespace trestle::perf {

class TrestleBackend : public Backend {
 public:
  // ranks and options outlive this.
  TrestleBackend(Ranks& ranks, const Options& options);
  TrestleBackend(const TrestleBackend&) = delete;
  TrestleBackend& operator=(const TrestleBackend&) = delete;
  ~TrestleBackend() override;

  const char* name() const override { return "trestle"; }
  size_t count() const override { return ranks_.states().size(); }
  Calls& calls(size_t i) override { return *states_[i].calls; }
  int rank(size_t i) const override { return ranks_.states()[i].rank; }
  void group_start() override;
  void group_end() override;
  void use_mul_sum(trestleDataType_t type) override;
  trestleRedOp_t mul_sum(size_t i) const override { return states_[i].mul_sum; }
  void wait() override { ranks_.wait(); }
  Graphs& graphs() override { return graphs_; }
  void wait_for_launches() override;
  void allocate(size_t bytes) override;
  RankBuffers& buffers(size_t i) override { return states_[i].buffers; }
  Access& access(size_t i) override { return *states_[i].access; }
  std::string lacks(const Collective&, trestleDataType_t, trestleRedOp_t) const override { return ""; }
  bool has_result_in_place(const Collective& collective) const override { return collective.verifies_in_place; }

 private:
  struct State {
    std::unique_ptr<Calls> calls;
    trestleRedOp_t mul_sum = trestleSum;
    std::unique_ptr<Access> access;
    RankBuffers buffers;  // last: its destructor uses the other members
  };
  Source source_for(const RankState& rank);

  Ranks& ranks_;
  const Options& options_;
  Graphs graphs_;
  std::map<char*, void*> registrations_;  // of -R 1, by buffer
  std::vector<State> states_;             // after what the buffers need
};

}  // namespace trestle::perf
