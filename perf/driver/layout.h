// How ranks are laid out: rank = (process * threads + thread) * ranks_per_thread + i. Value type.
#pragma once

namespace trestle::perf {

struct Layout {
  int process = 0;
  int processes = 1;
  int threads = 1;
  int ranks_per_thread = 1;
  int nranks() const { return processes * threads * ranks_per_thread; }
  int first_rank(int thread) const { return (process * threads + thread) * ranks_per_thread; }
};

}  // namespace trestle::perf
