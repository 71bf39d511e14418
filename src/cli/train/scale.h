// `trestle train --scale 4..2048`: the same step on more and more workers of a network. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/train/train_link.h"
#include "gradient/policy/policies.h"

namespace trestle {

struct ScaleRange {
  uint32_t least = 0;
  uint32_t most = 0;
};
// "4..2048": two whole numbers, the first at least 1 and not above the second. Errors (kInvalidArgument) are one
// sentence that begins with --scale.
Result<ScaleRange> parse_scale(const std::string& text);
// `least`, its doubles up to `most`, and `most`.
std::vector<uint32_t> workers_of(const ScaleRange& range);

struct ScalePoint {
  double iteration_s = 0;
  double speedup = 1;     // over one worker: workers * compute time / iteration_s; 0 if nothing takes any time
  double over_wfbp = 1;   // wfbp's time / iteration_s; 1 if neither takes any
  uint32_t messages = 0;  // 0 for delayed updates, whose steps differ
};

struct ScaleCurve {
  std::string policy;                             // as on the command line
  std::vector<std::optional<ScalePoint>> points;  // per entry of ScaleReport::workers; nothing: refused
};

struct ScaleReport {
  std::string workload;
  double compute_s = 0;
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::kRing;
  std::vector<uint32_t> workers;  // ascending
  std::vector<ScaleCurve> curves;
};

struct ScaleRequest {
  std::string name;  // of the workload
  const GradientWorkload& workload;
  TrainNetwork network;  // its number of workers is not read
  ScaleRange range;
  std::vector<ChosenPolicy> policies;
  uint32_t liberties = kLibertyNone;
  std::vector<double> link_ratios;
  std::optional<PreserverModel> loss = {};
  double copy_per_byte_s = 0;  // as in GradientLink
};

ScaleReport scale_training(const ScaleRequest& request);

// A table of times and one of speed-ups.
std::string scale_text(const ScaleReport& report);
// One object: workload, compute_s, algorithm, workers (list), curves (list of policy and points, per number of workers
// null or iteration_s, speedup, over_wfbp, messages).
std::string scale_json(const ScaleReport& report);
// Two diagrams beside one another: time per step and speed-up over the number of workers, both axes logarithmic.
std::string scale_svg(const ScaleReport& report);

}  // namespace trestle
