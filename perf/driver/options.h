// The command line of the perf binaries: nccl-tests' flags, and some that exist only here.
//
// A plain value, parsed once in main before anything else runs.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trestle::perf {

// Where the measured buffers lie.
enum class Location {
  kAuto,  // memory of GPUs if TRESTLE_DEVICE names one, or for NVIDIA's NCCL; else host memory
  kHost,
  kDevice,
};

struct Options {
  int threads = 1;           // -t
  int ranks_per_thread = 1;  // -g
  int processes = 0;         // -P: local processes to start; 0: this process is one
  size_t min_bytes = 32u << 20;
  size_t max_bytes = 32u << 20;
  size_t step_bytes = 1u << 20;  // used when step_factor <= 1
  int step_factor = 1;
  int iters = 20;
  int warmup_iters = 1;
  int agg_iters = 1;
  int run_cycles = 1;  // 0: forever
  bool parallel_init = false;
  int checks = 1;
  std::vector<trestleRedOp_t> ops = {trestleSum};
  std::vector<trestleDataType_t> types = {trestleFloat32};
  int root = 0;  // -1: all, one after the other
  int blocking = 0;
  int timeout_s = 0;  // 0: none
  bool report_cpu_time = false;
  bool report_timestamps = false;
  int average = 1;             // 0 rank 0, 1 mean, 2 min, 3 max
  int local_register = 0;      // a BufferKind
  bool null_stream = false;    // -y
  int unalign = 0;             // elements
  bool per_iteration = false;  // -I
  int skipped_iterations = 0;  // -K: iterations that the statistics of -I leave out
  int rail_stats = 0;          // -X: 1 of rank 0, 2 of all ranks
  std::string json_path;       // -J
  bool bind = true;            // --bind: one core per local process, if enough are not claimed
  bool compare_nccl = false;   // --backend nccl
  std::string nccl_library;    // --nccl-library; "": the name that the loader looks for
  Location location = Location::kAuto;
  bool call_times = false;  // --call-times: three more columns
  int graph_launches = 0;   // -G: so often the graph of a row's iterations is launched; 0: no graphs
  bool help = false;
  std::vector<size_t> predict_bytes;
  std::vector<std::string> remarks;  // one sentence per accepted flag that has no effect here
};

struct ParsedOptions {
  Options options;
  std::string error;  // a sentence; empty: no error
};

// argv as main receives it. Never prints, never exits.
ParsedOptions parse_options(int argc, char* const* argv);

std::string usage_text(const std::string& program);

// The size after `bytes` in the sweep; 0 after the last.
size_t next_size(const Options& options, size_t bytes);
// The number of sizes in the sweep.
uint64_t size_count(const Options& options);

}  // namespace trestle::perf
