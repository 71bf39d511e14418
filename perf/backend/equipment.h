// What a run needs besides Trestle's library: the library that it is compared with, and GPUs.
//
// Found once by main; the rest is collective over all threads of all processes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/backend/nccl_library.h"
#include "perf/driver/ranks.h"
#include "perf/gpu/gpu.h"

namespace trestle::perf {

struct Equipment {
  std::optional<NcclLibrary> nccl;  // --backend nccl
  std::unique_ptr<Gpus> gpus;       // null: nothing lies on a GPU
  int first_gpu = 0;
  bool all_on_first = false;  // TRESTLE_DEVICE names the GPU of this process's ranks
  std::string problem;        // a sentence: the options ask for something that is missing

  // local_rank: among the ranks of this host. Only where `gpus` is set; other hosts or processes may have none.
  int gpu_of(int local_rank) const;
};
Equipment find_equipment(const Options& options);
// The GPUs of `count` ranks from local_rank on; empty: Trestle's buffers lie in host memory.
std::vector<std::unique_ptr<Gpu>> open_gpus(const Equipment& equipment, int local_rank, size_t count);

// What is measured beside Trestle.
struct Compared {
  std::unique_ptr<Backend> backend;  // null: nothing
  std::vector<std::string> remarks;  // what is compared, and what cannot be
};
// local_rank: of this thread's first rank among the ranks of this host. All arguments outlive the result.
Compared make_compared(Ranks& ranks, const Options& options, const Equipment& equipment, int local_rank);

// How many buffers a rank has, and how large they may be for all of them to fit.
struct Room {
  int buffers = 0;
  double bytes = 0;  // of each, for this thread's ranks
};
// local_ranks: of this host.
Room room_for_buffers(const Ranks& ranks, const Equipment& equipment, const Compared& compared, int local_ranks);

}  // namespace trestle::perf
