// The ranks that one thread drives: communicators and streams of Trestle, and the few collective operations that the
// driver itself needs.
//
// Owned and used by that thread only. Every method except the accessors is collective over all threads of all
// processes: all call it in the same order. A failed library call ends the process (ending.h).
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "perf/driver/layout.h"
#include "perf/driver/options.h"
#include "perf/gpu/gpu.h"

namespace trestle::perf {

struct RankState {
  int rank = 0;
  trestleComm_t comm = nullptr;
  trestleStream_t stream = nullptr;  // null: the communicator's own
  Gpu* gpu = nullptr;                // where the measured buffers lie; null: in host memory
  void* cuda_stream = nullptr;       // of the GPU, if `stream` stands for it
};

enum class Combine { kSum, kMin, kMax };

// Joins ranks first_rank .. first_rank + comms.size() - 1 of nranks, all at the same time. devices: of these ranks;
// empty: as `config` says.
void join(std::vector<trestleComm_t>& comms, int first_rank, int nranks, const trestleUniqueId& id,
          const trestleConfig_t& config, const std::vector<int>& devices = {});

class Ranks {
 public:
  // Takes over the communicators, in rank order. prints: this thread is the one of the job that prints. gpus: one for
  // each of these ranks, with the rank's communicator on it; or empty. The GPUs outlive this. Buffers lie on GPUs if
  // all ranks of the job have one.
  Ranks(const Layout& layout, const Options& options, int first_rank, const std::vector<trestleComm_t>& comms,
        bool prints, const std::vector<std::unique_ptr<Gpu>>& gpus = {});
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  // Waits for everything enqueued.
  void wait();
  void barrier();
  // One value per thread, combined over all threads of all processes; the same result everywhere. Sums of integers are
  // exact to 2^53.
  double combine(double value, Combine how);
  // Several values per thread, combined element by element.
  std::vector<double> combine(const std::vector<double>& values, Combine how);
  // Every rank's copy of its thread's values, in rank order.
  std::vector<std::vector<double>> gather(const std::vector<double>& values);
  // Rank 0's bytes, on all ranks.
  void broadcast(void* data, size_t bytes);
  // `time`, combined as -a selects.
  double average(double time);
  // One text per rank, in rank order, cut to kTextBytes - 1.
  std::vector<std::string> gather(const std::vector<std::string>& texts);

  std::vector<RankState>& states() { return states_; }
  const std::vector<RankState>& states() const { return states_; }
  const Layout& layout() const { return layout_; }
  bool on_gpus() const { return states_.front().gpu != nullptr; }
  bool prints() const { return prints_; }
  static constexpr size_t kTextBytes = 448;

 private:
  // Calls `call` for every rank, in a group if there are several, and waits. Ignores the user's choice of algorithm.
  template <class Call>
  void together(Call call);
  void put_on(const std::vector<std::unique_ptr<Gpu>>& gpus);

  const Layout layout_;
  const Options& options_;
  const bool prints_;
  std::vector<RankState> states_;
};

}  // namespace trestle::perf
