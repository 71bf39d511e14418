// Graphs of a backend's streams (-G): what is enqueued while they are captured runs at each launch.
//
// Owned by the backend; used by its thread.
#pragma once

#include <cstddef>
#include <vector>

#include "perf/gpu/gpu.h"

namespace trestle::perf {

class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs() { drop(); }
  // Of a rank; both outlive this.
  void add(Gpu* gpu, void* stream) { ranks_.push_back({gpu, stream, nullptr}); }

  bool empty() const { return ranks_.empty(); }  // there is nothing to capture

  void begin_capture();
  void end_capture();
  void launch();
  // Whether the launches of the i-th rank are done.
  bool is_done(size_t i) const { return ranks_[i].gpu->is_idle(ranks_[i].stream); }
  // Ends what was captured. Nothing of it runs any more.
  void drop();

 private:
  struct Rank {
    Gpu* gpu;
    void* stream;
    void* graph;
  };
  std::vector<Rank> ranks_;
};

}  // namespace trestle::perf
