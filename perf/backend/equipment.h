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
  std::string problem;              // a sentence: the options ask for what is not there
};
Equipment find_equipment(const Options& options);

// What is measured beside Trestle.
struct Compared {
  std::unique_ptr<Backend> backend;  // null: nothing
  std::vector<std::string> remarks;  // what is compared, and what cannot be
  size_t most_bytes = SIZE_MAX;      // of a buffer, so that all buffers fit into the GPUs
};
// local_rank: of this thread's first rank among the ranks of this host, of which there are local_ranks. All arguments
// outlive the result.
Compared make_compared(Ranks& ranks, const Options& options, const Equipment& equipment, int local_rank,
                       int local_ranks);

}  // namespace trestle::perf
