// `trestle train` without its command line: predicts a training step under the policies of src/gradient. Reads the
// workload and topology files that the options name, and writes the picture; else pure. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/result.h"
#include "cli/train/train_link.h"
#include "gradient/policy/policies.h"
#include "gradient/workload.h"

namespace trestle {

// As on the command line; "" if not given.
struct TrainOptions {
  std::string workload;
  std::string compute;    // forward,backward in seconds
  std::string cost;       // a,b of an all-reduce: seconds, seconds per byte
  std::string cost_half;  // a,b of a reduce-scatter or an all-gather; else half of `cost`
  std::string copy;       // seconds per byte that is copied into a fused buffer or out of it; else copies are free
  std::string network;    // alpha,beta,gamma,workers,algorithm
  std::string topo;       // a topology file, whose costs the library's model predicts
  std::string links;      // mu of every link: for deft
  std::string policies = "all";
  std::string allow;         // liberties, by commas
  std::string loss;          // loss,least,rate,drift,deviation,batch: for deft
  std::string loss_epsilon;  // of the expected loss, relative
  std::string loss_merged;   // sum or mean
  std::string plot;          // SVG file to write
  std::string scale;         // range of workers, for `network`
  std::string preset;        // a table or figure of a paper; goes with `plot` and `json` alone
  bool compact = false;
  bool json = false;
  bool list = false;
  Config config;  // the variables; read for `topo` only
};

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
