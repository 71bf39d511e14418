// `trestle train` without its command line: predicts a training step under the policies of src/gradient. Reads the
// workload and topology files that the options name, and writes the picture; else pure. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/train/train_link.h"
#include "cli/train/train_options.h"
#include "gradient/policy/policies.h"
#include "gradient/workload.h"

namespace trestle {

struct RefusedPolicy {
  std::string policy;
  std::string why;
};

struct TrainReport {
  std::string workload;  // its name
  GradientWorkload tensors;
  TrainLink link;
  uint32_t liberties = kLibertyNone;
  std::optional<PreserverModel> loss;
  double wfbp_s = 0;               // what speed-ups are over
  std::vector<std::string> asked;  // per entry of `steps`: as on the command line
  std::vector<PlannedStep> steps;
  std::vector<RefusedPolicy> refused;  // only if all policies were asked for
};

// Of the i-th step over wfbp; 1 if neither takes any time.
double speedup(const TrainReport& report, size_t i);
// Errors (kInvalidArgument) are one sentence that begins with the option.
Result<TrainReport> predict_training(const TrainOptions& options);
// What the command prints: the report, with `scale` its curves, with `preset` that one, or with `list` the built-in
// workloads. Writes the picture first.
Result<std::string> train(const TrainOptions& options);

}  // namespace trestle
