// Splits by environment: groups of processes that measure at the same time (NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK).
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>

#include "perf/driver/layout.h"

namespace trestle::perf {

// colour = process op number.
struct Split {
  char op = 0;  // & | % /; 0: no split
  uint64_t number = 0;
  std::string problem;  // a sentence if the variables cannot be parsed
  int color(int process) const;
};

// split: "MOD 8", "%8", "AND 0x3", "DIV 0b10", ...; mask: hexadecimal, the same as AND. "": not set.
Split parse_split(const std::string& split, const std::string& mask);

// This process's place among the processes of its colour, in process order.
Layout group_layout(const Layout& job, const Split& split);

}  // namespace trestle::perf
