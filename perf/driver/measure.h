// Measures and verifies one half of a row.
//
// Every thread of every process calls these in the same order, with its own Ranks and one of its backends. The clock
// and the barriers are the same for all backends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/driver/collective.h"
#include "perf/driver/options.h"
#include "perf/driver/ranks.h"
#include "perf/report/progress.h"
#include "perf/report/table.h"

namespace trestle::perf {

double seconds_since(std::chrono::steady_clock::time_point start);

// One row of the table: a collective with its type, operator, root and size.
struct Row {
  const Collective* collective;
  const Options* options;
  Case call;  // rank is set per rank
  Shape shape;
  size_t element_bytes;
  size_t size_bytes;    // size of the larger buffer
  size_t buffer_bytes;  // size of the allocated buffers
};

Row make_row(const Collective& collective, const Options& options, trestleDataType_t type, trestleRedOp_t op, int root,
             int nranks, size_t bytes, size_t buffer_bytes);

// Number of bytes that the algorithm's bandwidth counts.
size_t moved_bytes(const Row& row);

// Runs `iters` iterations without timing them.
void warm_up(Backend& backend, const Row& row, int iters);
struct Timing {
  double seconds = 0;  // per operation, combined as -a selects
  // With -I: microseconds per operation of each iteration, the longest of all threads; with -J too: of each process.
  std::vector<double> iterations_us;
  std::vector<std::vector<double>> process_iterations_us;
};
// Runs the timed iterations. progress: ticks while no rank is timed.
Timing measure(Ranks& ranks, Backend& backend, const Row& row, bool in_place, Progress& progress);
// Everything but issue_us: medians per operation over single iterations on idle streams, each waited for. Combined as
// -a selects.
CallTimes measure_calls(Ranks& ranks, Backend& backend, const Row& row, bool in_place);
// issue_us, from pairs of iterations: the median per operation of the second one, combined in the same way.
double measure_issue(Ranks& ranks, Backend& backend, const Row& row, bool in_place);

struct Verdict {
  uint64_t wrong_elements;  // of all ranks
  bool failed_here;         // some of them are on this thread's ranks
};
// Fresh data, one operation, compared bit by bit (averages of floats: to 2 units in the last place). Up to -c times,
// until the first failure.
Verdict verify(Ranks& ranks, Backend& backend, const Row& row, bool in_place, Progress& progress);

}  // namespace trestle::perf
