// The command line of train_step_perf.
//
// A plain value, parsed once in main before anything else runs. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradient/workload.h"

namespace trestle::perf {

struct TrainStepArguments {
  // What is replayed.
  std::string workload = "resnet50@dear";
  std::string compute;  // forward,backward in seconds, for networks without a compute time
  bool compact = false;
  double scale_bytes = 1;
  double scale_time = 1;
  double balance = 0;  // the all-reduce of all bytes over the compute time; 0: compute times stay as they are
  bool apart = true;   // tensors do not lie together in memory

  // Under what, and how often.
  std::vector<std::string> policies = {"wfbp", "threshold:25M", "dear:tuned", "split_optimal:shared", "auto"};
  uint32_t allow = 0;                    // of GradientLiberty
  std::vector<std::string> links;        // rails of each, the fastest first; empty: the job's communicator
  std::optional<MessageCost> cost;       // of an all-reduce; else measured
  std::optional<MessageCost> cost_half;  // of a reduce-scatter or an all-gather; else half of it
  int steps = 3;
  int warmup = 1;
  int rounds = 5;
  int profile_steps = 2;
  bool check = false;
  int spoil = 0;  // the verified step whose result rank 0 alters; 0: none

  // Ranks.
  int processes = 0;  // local processes to start; 0: this process is one
  int threads = 1;    // each is a rank
  bool bind = true;
  int timeout_s = 0;  // 0: none

  bool json = false;
  bool help = false;
};

struct ParsedTrainStep {
  TrainStepArguments arguments;
  std::string error;  // a sentence; empty: fine
};

// argv as main receives it. Never prints, never exits.
ParsedTrainStep parse_train_step(int argc, char* const* argv);
std::string train_step_usage(const std::string& program);

}  // namespace trestle::perf
