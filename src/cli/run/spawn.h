// spawn: starts one rank's process, from fork() to its program.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/config/launcher.h"

namespace trestle {

struct SpawnRequest {
  const std::vector<std::string>& command;
  const Environment& environment;      // the complete environment
  std::array<int, 3> streams;          // its standard input, output and error
  const std::vector<int>& processors;  // it may run only on these; empty: on those of this process
  rlimit descriptors;                  // its limit of open files
  int guard;                           // learns of the process before the program runs (run/guard.h)
};

struct Spawned {
  enum class Step : int { kFork, kGuard, kBind, kExec };
  pid_t pid = -1;             // -1: nothing runs
  Step failed = Step::kFork;  // the step that failed
  int number = 0;             // errno of that step
};

// Starts the process and waits until its program runs, or could not be started. The process leads a process group of
// its own, and the kernel kills it when this process ends. It blocks no signal. Signals that the launcher has changed,
// or that a shell ignores for background jobs, get their default action. Others that are ignored stay ignored, like
// SIGHUP under nohup. To be called by this process's only thread.
Spawned spawn(const SpawnRequest& request);

}  // namespace trestle
