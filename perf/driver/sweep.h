// All rows of a run: types, operators, roots, sizes, cycles; each is measured, verified, printed and recorded.
//
// Every thread of every process has one and runs it at the same time; only the printing one shows anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/driver/collective.h"
#include "perf/driver/measure.h"
#include "perf/driver/options.h"
#include "perf/driver/ranks.h"
#include "perf/report/json_report.h"
#include "perf/report/progress.h"

namespace trestle::perf {

// Of one backend.
struct Score {
  std::string backend;
  double busbw_sum = 0;
  uint64_t halves = 0;
  double log_ratio_sum = 0;  // sum of log(time / time of the first backend)
  double mean_busbw() const { return halves == 0 ? 0 : busbw_sum / static_cast<double>(halves); }
};

// The result of one thread.
struct Tally {
  uint64_t failed_checks = 0;  // of all backends
  std::vector<Score> scores;   // one per backend; empty: nothing was measured
};

class Sweep {
 public:
  // backends: Trestle's, then those that it is compared with. report: null, or where the printing thread records its
  // rows. All arguments outlive the sweep.
  Sweep(Ranks& ranks, const std::vector<Backend*>& backends, const Collective& collective, const Options& options,
        size_t buffer_bytes, JsonReport* report);
  // Runs everything, as often as -N says.
  Tally run();

 private:
  void run_sizes(const std::vector<size_t>& measured, trestleDataType_t type, trestleRedOp_t op, int root);
  // The indices of the backends that can do rows of this kind. Shows why the others cannot.
  std::vector<size_t> able(trestleDataType_t type, trestleRedOp_t op) const;
  // seconds: the times of the two halves. The first backend sets them; the others are compared with them.
  void run_row(size_t backend, const Row& row, int root, double (&seconds)[2]);
  Half run_half(size_t backend, const Row& row, bool in_place, double& seconds);
  void show(const std::string& text) const;
  uint64_t agg_iters() const { return static_cast<uint64_t>(options_.agg_iters); }

  Ranks& ranks_;
  const std::vector<Backend*> backends_;
  const Collective& collective_;
  const Options& options_;
  const size_t buffer_bytes_;
  JsonReport* const report_;
  const std::vector<trestleRedOp_t> ops_;
  const std::vector<int> roots_;
  const Columns columns_;
  Progress progress_;
  Tally tally_;
};

}  // namespace trestle::perf
