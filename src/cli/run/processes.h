// The processes that a job starts: its ranks, and three that serve it (printer.h has the third).
//
// To be called by this process's only thread. The kernel kills all of them with this process, but for the guard.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/config/launcher.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

Error system_error(const std::string& what);  // with errno's reason

struct Pipe {
  UniqueFd from;
  UniqueFd to;
};
Result<Pipe> make_pipe();

using Shared = std::atomic<int64_t>;              // a number that a process shares with its children
Result<std::span<Shared>> share(size_t numbers);  // zeros; never unmapped

struct Launch {
  const std::vector<std::string>& command;
  const std::string& file;             // what is run
  const Environment& environment;      // the complete environment
  std::array<int, 3> streams;          // its standard input, output and error
  const std::vector<int>& processors;  // it may run only on these; empty: on those of this process
  rlimit descriptors;                  // its limit of open files
  Shared& guarded;                     // gets its process group before the program runs (start_guard)
};

struct Launched {
  pid_t pid = -1;  // -1: nothing runs
  // What has failed then, and errno. nullptr: exec.
  const char* failed = "no process can be started for a rank";
  int number = 0;
};

// Returns when the program runs, or could not be started. The process leads a process group of its own. It blocks no
// signal. Signals that the launcher has changed, or that a shell ignores for background jobs, get their default action.
// Others that are ignored stay ignored, like SIGHUP under nohup.
Launched launch(const Launch& request);

// Runs `body` in a child, which exits with its result and gets `signal` when this process ends.
Result<pid_t> start_process(const std::function<int()>& body, int signal);

// Starts a process that kills the groups in `guarded` (0: none) after this process was killed. The kernel kills the
// ranks themselves, but not what they have started, and a rank may be a script whose child does the work. SIGTERM must
// be blocked.
Result<pid_t> start_guard(std::span<Shared> guarded);

struct TerminalReader {
  pid_t pid = 0;
  UniqueFd input;  // what it has read
};

// Starts a process that reads the terminal, this process's standard input, for rank 0. A rank's process group is never
// the terminal's foreground one, so a rank that reads the terminal would be stopped. SIGCONT must be blocked.
Result<TerminalReader> start_terminal_reader();

}  // namespace trestle
