// The command line of kernel_perf: the flags of the other perf binaries, of which those about ranks are refused or
// answered with a sentence, and its own.
//
// A plain value, parsed once in main.
#pragma once

#include <string>
#include <vector>

#include "perf/driver/options.h"

namespace trestle::perf {

struct KernelArguments {
  Options options;  // ops without kMulSum; remarks: one sentence per flag that does nothing here
  std::vector<int> sources = {2};
  std::string error;  // a sentence; empty: fine
};

// argv as main gets it. Never prints, never exits.
KernelArguments parse_kernel_arguments(int argc, char** argv);
std::string kernel_usage(const std::string& program);

}  // namespace trestle::perf
