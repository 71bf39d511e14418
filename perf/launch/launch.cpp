#include "perf/launch/launch.h"

#include <cstdio>

#include "base/config/config.h"
#include "cli/run/job.h"
#include "perf/driver/ending.h"

namespace trestle::perf {

int run_local_processes(int argc, char** argv, int processes, bool bind) {
  RunOptions options;
  RankProgram& program = options.programs.emplace_back();
  program.ranks = processes;
  program.file = "/proc/self/exe";
  program.command.assign(argv, argv + argc);
  program.command.insert(program.command.end(), {"-P", "0"});
  options.bind = bind ? Bind::kAuto : Bind::kNone;
  options.grace_ns = int64_t{kGraceSeconds} * 1'000'000'000;
  options.prints = false;
  std::fflush(nullptr);
  const Result<int> ended = run_ranks(options, process_environment());
  if (ended.ok()) return ended.value();
  std::printf("cannot prepare local processes: %s\n", ended.error().message.c_str());
  return kExitInternal;
}

}  // namespace trestle::perf
