// TrainOptions: the options of `trestle train`. Value type.
#pragma once

#include <string>

#include "base/config/config.h"

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

}  // namespace trestle
