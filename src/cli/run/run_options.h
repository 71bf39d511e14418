// The options of `trestle run`. Value types.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/cores/binding.h"

namespace trestle {

struct RankProgram {
  int ranks = 1;
  std::vector<std::string> command;                              // program and arguments
  std::vector<std::pair<std::string, std::string>> environment;  // --env: before the variables of this process
};

enum class Prefix {
  kAuto,  // "[3] " before every line, except in files of one rank
  kAlways,
  kNever,
};

struct RunOptions {
  std::vector<RankProgram> programs;  // at least one; ranks are numbered across programs
  Bind bind = Bind::kAuto;
  int64_t grace_ns = 2'000'000'000;  // to report the reason, and again between SIGTERM and SIGKILL
  int64_t timeout_ns = 0;            // 0: none
  std::string output_folder;         // "": this process's standard output and error
  Prefix prefix = Prefix::kAuto;
  bool verbose = false;

  int ranks() const {
    int sum = 0;
    for (const RankProgram& program : programs) sum += program.ranks;
    return sum;
  }
};

}  // namespace trestle
