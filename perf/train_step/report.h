// What train_step_perf prints: the text of the table, or one JSON document. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradient/workload.h"
#include "perf/train_step/arguments.h"

namespace trestle::perf {

// The results of one policy. Counts are of rank 0, per step.
struct PolicyOutcome {
  std::string policy;   // as asked for
  std::string refused;  // the scheduler's sentence; "": it was carried out
  std::string chosen;   // as planned: of auto, the policy that it took
  double simulated_s = 0;
  double simulated_exposed_s = 0;
  std::vector<double> iteration_s;  // by round: mean over steps and ranks
  double messages = 0;
  double bytes = 0;
  double copied_bytes = 0;
  bool delayed = false;          // its updates may have the gradients of earlier steps, and of several
  double updates = 0;            // with gradients
  double simulated_updates = 0;  // those that the plan has
  double late_s = 0;             // mean delay of gradients, because the processors were busy
  std::vector<double> ready_ns;  // every timed call of trestleGradReady on every rank
  bool compared = false;         // not where updates are delayed or compressed
  uint64_t wrong = 0;            // elements, on all ranks
};

struct TrainStepReport {
  const TrainStepArguments& arguments;
  const GradientWorkload& workload;  // with the compute times that were replayed
  int ranks = 0;
  double all_reduce_s = 0;  // measured: all bytes in one message
  std::vector<PolicyOutcome> policies;
};

double median_of(std::vector<double> values);  // of an even number: the mean of the middle two; of none: 0
// Measured iteration time without the compute that was replayed; not negative.
double exposed_s(const TrainStepReport& report, const PolicyOutcome& outcome);
uint64_t wrong_elements(const TrainStepReport& report);

// Lines without their ends. The first part is known before the rounds.
std::vector<std::string> beginning_lines(const TrainStepReport& report);
std::vector<std::string> table_lines(const TrainStepReport& report);
std::string report_json(const TrainStepReport& report);  // one line

}  // namespace trestle::perf
