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

// Starts the process and waits until its program runs, or could not. The process leads a process group of its own, and
// the kernel kills it when this process ends. It blocks no signal. Those that the launcher has changed or that a shell
// ignores for jobs in the background have their default action; others that are ignored stay so, like SIGHUP below
// nohup. To be called by this process's only thread.
Spawned spawn(const SpawnRequest& request);

}  // namespace trestle
