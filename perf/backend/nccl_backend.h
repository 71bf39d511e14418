// A library with NCCL's interface as a backend: communicators of its own for the same ranks. Threads: see backend.h.
//
// Buffers are memory of the ranks' GPUs, or host memory if the library takes that.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/backend/nccl_library.h"
#include "perf/driver/ranks.h"
#include "perf/gpu/gpu.h"

namespace trestle::perf {

class NcclBackend : public Backend {
 public:
  // gpus: one per rank of this thread; empty: host memory, and calls that are complete when they return. All arguments
  // that are references outlive this.
  NcclBackend(Ranks& ranks, const Options& options, const NcclLibrary& nccl, std::vector<std::unique_ptr<Gpu>> gpus);
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;
  ~NcclBackend() override;

  const char* name() const override { return "nccl"; }
  size_t count() const override { return states_.size(); }
  Calls& calls(size_t i) override { return *states_[i].calls; }
  int rank(size_t i) const override { return states_[i].rank; }
  void group_start() override;
  void group_end() override;
  void use_mul_sum(trestleDataType_t type) override;
  trestleRedOp_t mul_sum(size_t i) const override { return static_cast<trestleRedOp_t>(states_[i].mul_sum); }
  void wait() override;
  Graphs& graphs() override { return graphs_; }
  void wait_for_launches() override { wait(); }
  void allocate(size_t bytes) override;
  RankBuffers& buffers(size_t i) override { return states_[i].buffers; }
  Access& access(size_t i) override { return *states_[i].access; }
  std::string lacks(const Collective& collective, trestleDataType_t type, trestleRedOp_t op) const override;
  // NCCL does not define the result of an all-to-all in place.
  bool has_result_in_place(const Collective& collective) const override;

  // A sentence for each option that has no effect on this library.
  std::vector<std::string> remarks() const;

 private:
  struct State {
    int rank = 0;
    std::unique_ptr<Gpu> gpu;
    void* stream = nullptr;
    NcclComm comm = nullptr;
    std::unique_ptr<Calls> calls;
    int mul_sum = -1;
    std::unique_ptr<Access> access;
    std::map<char*, void*> handles;  // of -R, by buffer
    RankBuffers buffers;             // last: its destructor uses the other members
  };
  void join(Ranks& ranks);
  Source source_for(State& state);
  Source memory_for(State& state) const;
  bool makes_windows() const;
  void wait_for(const State& state) const;

  const Options& options_;
  const NcclLibrary& nccl_;
  std::vector<State> states_;
  Graphs graphs_;
  std::optional<OnGpu> on_;     // this thread's device is that of its first rank
  int compute_capability_ = 0;  // the lowest of all ranks; 0: no GPUs
};

}  // namespace trestle::perf
