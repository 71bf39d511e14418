// Runs one job: starts its processes, waits for its fault and its end, and finds its leftovers.
#pragma once

#include <string>
#include <vector>

#include "torture/job.h"
#include "torture/verdict.h"

namespace torture {

struct JobResult {
  std::vector<std::string> wrong;    // errors; empty: the job passed
  std::vector<std::string> details;  // sentences and output of the ranks
  Verdict verdict;
  uint64_t calls = 0;  // of all ranks
  int strangers = 0;
  bool struck = false;              // the fault has happened
  int leaks = 0;                    // processes with leftovers of their own
  bool wrote = false;               // the library has printed something
  std::vector<uint64_t> checksums;  // of all threads of all ranks
};

struct Watch {
  int seconds = 120;      // without any progress; then the job hangs
  bool stacks = false;    // print stacks of processes that hang, with gdb
  bool isolated = false;  // no other program uses /dev/shm
};
JobResult run_job(JobPlan plan, const Watch& watch);

}  // namespace torture
