// Runs one job: its processes, its fault, its end, and what is left of it.
#pragma once

#include <string>
#include <vector>

#include "torture/job.h"
#include "torture/verdict.h"

namespace torture {

struct JobResult {
  std::vector<std::string> wrong;    // empty: all is as promised
  std::vector<std::string> details;  // sentences of the ranks and what they wrote
  Verdict verdict;
  uint64_t calls = 0;  // of all ranks
  int strangers = 0;
  bool struck = false;              // the fault has happened
  int leaks = 0;                    // processes that have left something in themselves
  bool wrote = false;               // the library has written something
  std::vector<uint64_t> checksums;  // of all threads of all ranks
};

struct Watch {
  int seconds = 120;      // without any progress: only then the job hangs
  bool stacks = false;    // of processes that hang, with gdb
  bool isolated = false;  // nobody else leaves anything in /dev/shm
};
JobResult run_job(JobPlan plan, const Watch& watch);

}  // namespace torture
