// spawn: one rank's process, from fork() to the program that it runs.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/launcher.h"

namespace trestle {

struct SpawnRequest {
  const std::vector<std::string>& command;
  const Environment& environment;      // all that it gets
  std::array<int, 3> streams;          // its standard input, output and error
  const std::vector<int>& processors;  // it may run on these only; empty: on those of this process
  rlimit descriptors;                  // its limit
  int guard;                           // told of the process before the program runs (run/guard.h)
};

struct Spawned {
  enum class Step : int { kFork, kGuard, kBind, kExec };
  pid_t pid = -1;             // -1: nothing runs
  Step failed = Step::kFork;  // where
  int number = 0;             // errno of it
};

// Starts the process and waits until its program runs, or could not. The process leads a process group of its own, has
// the default action for every signal but one that is ignored for good (nohup's SIGHUP), and is killed by the kernel
// when this process ends. To be called by this process's only thread.
Spawned spawn(const SpawnRequest& request);

}  // namespace trestle
