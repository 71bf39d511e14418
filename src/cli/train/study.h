// `trestle train study` without its command line: the Themis paper's end-to-end study (study/training.h), on its
// systems or on one topology. Reads the topology file that the options name; else pure. Any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "gradient/layers/iteration.h"

namespace trestle {

// As on the command line; "" if not given.
struct StudyOptions {
  std::string topology_file;  // "": the paper's six systems
  std::string chunks = "64";
  std::string workload;  // "": all
  std::string batch;
  std::string overlap = "none";  // or buckets
  Accelerator accelerator;
  bool json = false;
};

// The text for standard output. Errors (kInvalidArgument) are one sentence.
Result<std::string> study_iterations(const StudyOptions& options);

}  // namespace trestle
